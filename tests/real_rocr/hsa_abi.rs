//! Compares the handwritten HSA interface with the installed headers.

use std::fs;
use std::mem::{offset_of, size_of};
use std::process::Command;

use rocov::device::hsa::abi;
use rocov::device::hsa::abi::{BarrierPacket, LoaderTable, PointerInfo, Queue};

/// The C expressions, and their values in the handwritten interface.
fn expectations() -> Vec<(&'static str, u64)> {
    vec![
        ("HSA_STATUS_SUCCESS", abi::SUCCESS.into()),
        (
            "HSA_STATUS_ERROR_NOT_INITIALIZED",
            abi::NOT_INITIALIZED.into(),
        ),
        (
            "HSA_STATUS_ERROR_INVALID_SYMBOL_NAME",
            abi::INVALID_SYMBOL_NAME.into(),
        ),
        (
            "HSA_SYSTEM_INFO_TIMESTAMP",
            abi::SYSTEM_INFO_TIMESTAMP.into(),
        ),
        ("HSA_AGENT_INFO_NAME", abi::AGENT_INFO_NAME.into()),
        ("HSA_AGENT_INFO_DEVICE", abi::AGENT_INFO_DEVICE.into()),
        ("HSA_AGENT_INFO_ISA", abi::AGENT_INFO_ISA.into()),
        (
            "HSA_AMD_AGENT_INFO_DRIVER_NODE_ID",
            abi::AGENT_INFO_DRIVER_NODE_ID.into(),
        ),
        ("HSA_AMD_AGENT_INFO_UUID", abi::AGENT_INFO_UUID.into()),
        ("HSA_ISA_INFO_NAME_LENGTH", abi::ISA_INFO_NAME_LENGTH.into()),
        ("HSA_ISA_INFO_NAME", abi::ISA_INFO_NAME.into()),
        ("HSA_DEVICE_TYPE_CPU", abi::DEVICE_TYPE_CPU.into()),
        ("HSA_DEVICE_TYPE_GPU", abi::DEVICE_TYPE_GPU.into()),
        ("HSA_SIGNAL_CONDITION_LT", abi::SIGNAL_LESS.into()),
        ("HSA_WAIT_STATE_BLOCKED", abi::WAIT_BLOCKED.into()),
        (
            "HSA_EXECUTABLE_SYMBOL_INFO_TYPE",
            abi::SYMBOL_INFO_TYPE.into(),
        ),
        (
            "HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS",
            abi::SYMBOL_INFO_VARIABLE_ADDRESS.into(),
        ),
        (
            "HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE",
            abi::SYMBOL_INFO_VARIABLE_SIZE.into(),
        ),
        ("HSA_SYMBOL_KIND_VARIABLE", abi::SYMBOL_KIND_VARIABLE.into()),
        ("HSA_EXTENSION_AMD_LOADER", abi::EXTENSION_AMD_LOADER.into()),
        (
            "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_KIND",
            abi::LOADED_INFO_KIND.into(),
        ),
        (
            "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT",
            abi::LOADED_INFO_AGENT.into(),
        ),
        (
            "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE",
            abi::LOADED_INFO_STORAGE_TYPE.into(),
        ),
        (
            "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE",
            abi::LOADED_INFO_STORAGE_BASE.into(),
        ),
        (
            "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE",
            abi::LOADED_INFO_STORAGE_SIZE.into(),
        ),
        (
            "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA",
            abi::LOADED_INFO_LOAD_DELTA.into(),
        ),
        (
            "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE",
            abi::LOADED_INFO_LOAD_BASE.into(),
        ),
        (
            "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE",
            abi::LOADED_INFO_LOAD_SIZE.into(),
        ),
        (
            "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH",
            abi::LOADED_INFO_URI_LENGTH.into(),
        ),
        (
            "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI",
            abi::LOADED_INFO_URI.into(),
        ),
        (
            "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_KIND_AGENT",
            abi::LOADED_KIND_AGENT.into(),
        ),
        (
            "HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY",
            abi::STORAGE_MEMORY.into(),
        ),
        (
            "HSA_AMD_MEMORY_POOL_INFO_SEGMENT",
            abi::POOL_INFO_SEGMENT.into(),
        ),
        ("HSA_AMD_SEGMENT_GLOBAL", abi::POOL_SEGMENT_GLOBAL.into()),
        (
            "HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS",
            abi::AGENT_POOL_INFO_ACCESS.into(),
        ),
        (
            "HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED",
            abi::POOL_ACCESS_NEVER.into(),
        ),
        ("HSA_EXT_POINTER_TYPE_HSA", abi::POINTER_TYPE_HSA.into()),
        // Handles are structs of one u64, passed as one.
        ("HSA_QUEUE_TYPE_SINGLE", abi::QUEUE_TYPE_SINGLE.into()),
        (
            "offsetof(hsa_queue_t, type)",
            offset_of!(Queue, kind) as u64,
        ),
        (
            "offsetof(hsa_queue_t, base_address)",
            offset_of!(Queue, base) as u64,
        ),
        (
            "offsetof(hsa_queue_t, doorbell_signal)",
            offset_of!(Queue, doorbell) as u64,
        ),
        (
            "offsetof(hsa_queue_t, size)",
            offset_of!(Queue, size) as u64,
        ),
        (
            "sizeof(hsa_barrier_and_packet_t)",
            size_of::<BarrierPacket>() as u64,
        ),
        (
            "offsetof(hsa_barrier_and_packet_t, dep_signal)",
            offset_of!(BarrierPacket, dependencies) as u64,
        ),
        (
            "offsetof(hsa_barrier_and_packet_t, completion_signal)",
            offset_of!(BarrierPacket, completion_signal) as u64,
        ),
        (
            "HSA_PACKET_TYPE_BARRIER_AND << HSA_PACKET_HEADER_TYPE \
             | 1 << HSA_PACKET_HEADER_BARRIER \
             | HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE \
             | HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE",
            abi::BARRIER_HEADER.into(),
        ),
        ("sizeof(hsa_agent_t)", size_of::<u64>() as u64),
        ("sizeof(hsa_executable_t)", size_of::<u64>() as u64),
        ("sizeof(hsa_loaded_code_object_t)", size_of::<u64>() as u64),
        ("sizeof(hsa_status_t)", size_of::<abi::Status>() as u64),
        (
            "offsetof(hsa_amd_pointer_info_t, type)",
            offset_of!(PointerInfo, kind) as u64,
        ),
        (
            "offsetof(hsa_amd_pointer_info_t, agentBaseAddress)",
            offset_of!(PointerInfo, agent_base) as u64,
        ),
        (
            "offsetof(hsa_amd_pointer_info_t, sizeInBytes)",
            offset_of!(PointerInfo, len) as u64,
        ),
        (
            "offsetof(hsa_amd_pointer_info_t, agentOwner)",
            offset_of!(PointerInfo, owner) as u64,
        ),
        // The header's struct has grown since; ours ends at the owner.
        (
            "offsetof(hsa_amd_pointer_info_t, agentOwner) + sizeof(hsa_agent_t)",
            size_of::<PointerInfo>() as u64,
        ),
        (
            "sizeof(hsa_ven_amd_loader_1_03_pfn_t)",
            size_of::<LoaderTable>() as u64,
        ),
        (
            "offsetof(hsa_ven_amd_loader_1_03_pfn_t, \
             hsa_ven_amd_loader_executable_iterate_loaded_code_objects)",
            offset_of!(LoaderTable, iterate_loaded_code_objects) as u64,
        ),
        (
            "offsetof(hsa_ven_amd_loader_1_03_pfn_t, \
             hsa_ven_amd_loader_loaded_code_object_get_info)",
            offset_of!(LoaderTable, loaded_code_object_get_info) as u64,
        ),
        (
            "offsetof(hsa_ven_amd_loader_1_03_pfn_t, hsa_ven_amd_loader_iterate_executables)",
            offset_of!(LoaderTable, iterate_executables) as u64,
        ),
    ]
}

#[test]
fn constants_and_layouts_are_those_of_the_installed_headers() {
    let expectations = expectations();
    let checks: String = expectations
        .iter()
        .map(|(expression, value)| {
            format!("_Static_assert(({expression}) == {value}, \"{expression}\");\n")
        })
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("abi.c");
    let includes = "#include <stddef.h>\n#include <hsa/hsa.h>\n#include <hsa/hsa_ext_amd.h>\n\
                    #include <hsa/hsa_ven_amd_loader.h>\n";
    fs::write(&source, format!("{includes}{checks}")).unwrap();
    let output = Command::new("gcc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"])
        .arg(&source)
        .output()
        .expect("gcc can be started");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
