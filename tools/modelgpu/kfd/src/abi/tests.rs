//! Compares the mirror of `/dev/kfd`'s interface with the installed header: a C compiler checks
//! the offsets that Rust computed.

use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;
use std::{env, fs, process};

use super::kfd;

/// `(C field, Rust offset)` of one struct; a struct may have grown in newer headers.
struct Mirror {
    name: &'static str,
    fields: Vec<(&'static str, usize)>,
}

macro_rules! mirror {
    ($rust:ident, $name:literal: $($field:ident = $c:literal),*) => {
        Mirror {
            name: $name,
            fields: vec![$(($c, offset_of!(kfd::$rust, $field))),*],
        }
    };
}

#[rustfmt::skip]
fn mirrors() -> Vec<Mirror> {
    vec![
        mirror!(GetVersion, "kfd_ioctl_get_version_args":
            major = "major_version", minor = "minor_version"),
        mirror!(CreateQueue, "kfd_ioctl_create_queue_args":
            ring_base = "ring_base_address", write_pointer = "write_pointer_address",
            read_pointer = "read_pointer_address", doorbell_offset = "doorbell_offset",
            ring_size = "ring_size", gpu_id = "gpu_id", queue_type = "queue_type",
            percentage = "queue_percentage", queue_id = "queue_id",
            save_area = "ctx_save_restore_address", control_stack_size = "ctl_stack_size"),
        mirror!(UpdateQueue, "kfd_ioctl_update_queue_args":
            queue_id = "queue_id", percentage = "queue_percentage"),
        mirror!(GetClockCounters, "kfd_ioctl_get_clock_counters_args":
            gpu_clock = "gpu_clock_counter", system_frequency = "system_clock_freq",
            gpu_id = "gpu_id"),
        mirror!(Apertures, "kfd_process_device_apertures":
            lds_base = "lds_base", scratch_limit = "scratch_limit", gpuvm_limit = "gpuvm_limit",
            gpu_id = "gpu_id"),
        mirror!(GetProcessApertures, "kfd_ioctl_get_process_apertures_args":
            count = "num_of_nodes"),
        mirror!(GetProcessAperturesNew, "kfd_ioctl_get_process_apertures_new_args":
            apertures = "kfd_process_device_apertures_ptr", count = "num_of_nodes"),
        mirror!(CreateEvent, "kfd_ioctl_create_event_args":
            page_offset = "event_page_offset", trigger_data = "event_trigger_data",
            event_type = "event_type", auto_reset = "auto_reset", event_id = "event_id",
            slot_index = "event_slot_index"),
        mirror!(EventData, "kfd_event_data":
            payload = "memory_exception_data", extension = "kfd_event_data_ext",
            event_id = "event_id"),
        mirror!(WaitEvents, "kfd_ioctl_wait_events_args":
            events = "events_ptr", count = "num_events", wait_for_all = "wait_for_all",
            timeout_ms = "timeout", result = "wait_result"),
        mirror!(AllocMemory, "kfd_ioctl_alloc_memory_of_gpu_args":
            va = "va_addr", size = "size", handle = "handle", mmap_offset = "mmap_offset",
            gpu_id = "gpu_id", flags = "flags"),
        mirror!(MapMemory, "kfd_ioctl_map_memory_to_gpu_args":
            handle = "handle", gpu_ids = "device_ids_array_ptr", count = "n_devices",
            done = "n_success"),
        mirror!(GetDmabufInfo, "kfd_ioctl_get_dmabuf_info_args":
            size = "size", metadata_size = "metadata_size", gpu_id = "gpu_id", flags = "flags",
            fd = "dmabuf_fd"),
        mirror!(ImportDmabuf, "kfd_ioctl_import_dmabuf_args":
            va = "va_addr", handle = "handle", fd = "dmabuf_fd"),
        mirror!(AllocQueueGws, "kfd_ioctl_alloc_queue_gws_args":
            queue_id = "queue_id", count = "num_gws", first = "first_gws"),
        mirror!(Svm, "kfd_ioctl_svm_args":
            start = "start_addr", size = "size", operation = "op", count = "nattr"),
        mirror!(SvmAttribute, "kfd_ioctl_svm_attribute": kind = "type", value = "value"),
        mirror!(AvailableMemory, "kfd_ioctl_get_available_memory_args":
            available = "available", gpu_id = "gpu_id"),
    ]
}

/// Requests with a known number: `(C request, our number)`.
const REQUESTS: [(&str, u32); 10] = [
    ("AMDKFD_IOC_GET_VERSION", kfd::nr::GET_VERSION),
    ("AMDKFD_IOC_CREATE_QUEUE", kfd::nr::CREATE_QUEUE),
    ("AMDKFD_IOC_WAIT_EVENTS", kfd::nr::WAIT_EVENTS),
    ("AMDKFD_IOC_ALLOC_MEMORY_OF_GPU", kfd::nr::ALLOC_MEMORY),
    ("AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU", kfd::nr::UNMAP_MEMORY),
    ("AMDKFD_IOC_IMPORT_DMABUF", kfd::nr::IMPORT_DMABUF),
    ("AMDKFD_IOC_SET_XNACK_MODE", kfd::nr::SET_XNACK_MODE),
    ("AMDKFD_IOC_ALLOC_QUEUE_GWS", kfd::nr::ALLOC_QUEUE_GWS),
    ("AMDKFD_IOC_SVM", kfd::nr::SVM),
    ("AMDKFD_IOC_AVAILABLE_MEMORY", kfd::nr::AVAILABLE_MEMORY),
];

/// Constants of enumerations and macros: `(C name, our value)`.
const CONSTANTS: [(&str, u32); 12] = [
    ("KFD_IOCTL_SVM_OP_SET_ATTR", kfd::svm_operation::SET),
    ("KFD_IOCTL_SVM_OP_GET_ATTR", kfd::svm_operation::GET),
    (
        "KFD_IOCTL_SVM_ATTR_PREFERRED_LOC",
        kfd::svm_attribute::PREFERRED_LOCATION,
    ),
    (
        "KFD_IOCTL_SVM_ATTR_PREFETCH_LOC",
        kfd::svm_attribute::PREFETCH_LOCATION,
    ),
    ("KFD_IOCTL_SVM_ATTR_ACCESS", kfd::svm_attribute::ACCESS),
    (
        "KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE",
        kfd::svm_attribute::ACCESS_IN_PLACE,
    ),
    (
        "KFD_IOCTL_SVM_ATTR_NO_ACCESS",
        kfd::svm_attribute::NO_ACCESS,
    ),
    (
        "KFD_IOCTL_SVM_ATTR_SET_FLAGS",
        kfd::svm_attribute::SET_FLAGS,
    ),
    (
        "KFD_IOCTL_SVM_ATTR_CLR_FLAGS",
        kfd::svm_attribute::CLEAR_FLAGS,
    ),
    (
        "KFD_IOCTL_SVM_ATTR_GRANULARITY",
        kfd::svm_attribute::GRANULARITY,
    ),
    ("KFD_IOCTL_SVM_FLAG_COHERENT", kfd::svm_flag::COHERENT),
    (
        "KFD_IOCTL_SVM_FLAG_GPU_READ_MOSTLY",
        kfd::svm_flag::READ_MOSTLY,
    ),
];

#[test]
fn structs_and_numbers_agree_with_the_installed_header() {
    let mut source = String::from("#include <stddef.h>\n#include <linux/kfd_ioctl.h>\n");
    for Mirror { name, fields } in mirrors() {
        for (field, offset) in fields {
            writeln!(
                source,
                "_Static_assert(offsetof(struct {name}, {field}) == {offset}, \"{name}.{field}\");"
            )
            .unwrap();
        }
    }
    for (request, number) in REQUESTS {
        writeln!(
            source,
            "_Static_assert(_IOC_NR({request}) == {number}, \"{request}\");"
        )
        .unwrap();
    }
    for (name, value) in CONSTANTS {
        writeln!(source, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    let directory = env::temp_dir().join(format!("rocov-modelgpu-abi-{}", process::id()));
    fs::create_dir_all(directory.join("drm")).unwrap();
    // The header takes only the names of the integer types from there.
    fs::write(directory.join("drm/drm.h"), "#include <linux/types.h>\n").unwrap();
    let file = directory.join("abi.c");
    fs::write(&file, source).unwrap();
    let output = Command::new("clang-22")
        .args(["-fsyntax-only", "-I"])
        .args([&directory, &file])
        .output();
    fs::remove_dir_all(&directory).unwrap();
    let output = output.expect("clang-22 is installed (tools/setup)");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
