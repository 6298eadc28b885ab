//! The flags for each compiler and option.

use super::counting::Way;
use super::*;

fn arguments(host: bool, archs: &[&str]) -> FlagsArguments {
    FlagsArguments {
        clang: None,
        offload_arch: archs.iter().map(ToString::to_string).collect(),
        host,
        openmp: false,
        hiprtc: None,
        counters: None,
        uniformity: false,
        cuda_path: None,
        link: false,
    }
}

/// LLVM's own counters.
const STOCK: Counting = Counting {
    way: Way::Llvm,
    names: None,
    uniformity: false,
};

fn own(linker: bool) -> Own {
    Own {
        header: "/r/rocov_device.h".into(),
        host_headers: None,
        linker: linker.then(|| "/r/rdc/lld".into()),
    }
}

fn line_of(form: Form, host: bool, archs: &[&str]) -> String {
    let nothing = ClangProbe {
        options: Vec::new(),
        units_clash: false,
        lacks_runtime: false,
    };
    let line = line(
        form,
        Language::Hip,
        &arguments(host, archs),
        &nothing,
        &STOCK,
        &own(false),
    )
    .unwrap();
    String::from_utf8(line).unwrap()
}

#[test]
fn driver_flags_are_for_the_device_unless_the_host_is_asked_for() {
    assert_eq!(
        line_of(Form::Driver, false, &[]),
        "-Xarch_device -fprofile-instr-generate -Xarch_device -fcoverage-mapping \
         -Xarch_device -fprofile-update=atomic -include /r/rocov_device.h\n"
    );
    assert_eq!(
        line_of(Form::Driver, true, &["gfx90a", "gfx942"]),
        "-fprofile-instr-generate -fcoverage-mapping -fprofile-update=atomic \
         -include /r/rocov_device.h --offload-arch=gfx90a --offload-arch=gfx942\n"
    );
}

#[test]
fn flags_for_nvidia_give_records_absolute_pointers() {
    let nothing = ClangProbe {
        options: Vec::new(),
        units_clash: false,
        lacks_runtime: false,
    };
    let mut arguments = arguments(false, &["sm_90"]);
    arguments.cuda_path = Some("/opt/cuda".into());
    let own = own(false);
    let form = Form::FrontEnd;
    let line = line(form, Language::Cuda, &arguments, &nothing, &STOCK, &own).unwrap();
    let line = String::from_utf8(line).unwrap();
    assert!(
        line.ends_with(
            "--start-no-unused-arguments -Xarch_device -mllvm=-profile-correlate=binary \
             --end-no-unused-arguments -include /r/rocov_device.h --offload-arch=sm_90 \
             --cuda-path=/opt/cuda\n"
        ),
        "{line}"
    );
}

#[test]
fn one_compilation_is_for_one_vendor() {
    let archs = ["gfx90a", "sm_90"].map(str::to_owned);
    let error = Language::for_archs(&archs).unwrap_err().to_string();
    assert_eq!(
        error,
        "one compilation cannot target both AMD and NVIDIA GPUs (gfx90a and sm_90): run `rocov flags` for each"
    );
    assert_eq!(Language::for_archs(&archs[1..]).unwrap(), Language::Cuda);
    assert_eq!(Language::for_archs(&[]).unwrap(), Language::Hip);
}

#[test]
fn front_end_flags_say_so_to_the_device_header() {
    assert_eq!(
        line_of(Form::FrontEnd, true, &[]),
        "-Xclang -fprofile-instrument=clang -Xclang -fcoverage-mapping \
         -Xclang -fprofile-update=atomic -DROCOV_DEVICE_INSTRUMENTED \
         -fprofile-instr-generate -fcoverage-mapping -include /r/rocov_device.h\n"
    );
}

#[test]
fn options_of_device_code_are_for_the_device() {
    let probe = ClangProbe {
        options: vec!["-one=0", "-two=0"],
        units_clash: true,
        lacks_runtime: false,
    };
    let line_of = |form| {
        let line = line(
            form,
            Language::Hip,
            &arguments(true, &[]),
            &probe,
            &STOCK,
            &own(true),
        )
        .unwrap();
        String::from_utf8(line).unwrap()
    };
    let options = "-Xarch_device -mllvm=-one=0 -Xarch_device -mllvm=-two=0";
    let ending = "-include /r/rocov_device.h -B/r/rdc\n";
    let line = line_of(Form::Driver);
    assert!(
        line.ends_with(&format!("=atomic {options} {ending}")),
        "{line}"
    );
    let line = line_of(Form::FrontEnd);
    let quiet = format!("--start-no-unused-arguments {options} --end-no-unused-arguments");
    assert!(line.ends_with(&format!(" {quiet} {ending}")), "{line}");
}

#[test]
fn the_linker_of_openmp_is_for_the_clang_that_links_device_code() {
    let probe = ClangProbe {
        options: vec!["-one=0"],
        units_clash: true,
        lacks_runtime: false,
    };
    let arguments = FlagsArguments {
        openmp: true,
        ..arguments(false, &["gfx90a"])
    };
    let line = line(
        Form::Driver,
        Language::Hip,
        &arguments,
        &probe,
        &STOCK,
        &own(true),
    )
    .unwrap();
    let line = String::from_utf8(line).unwrap();
    let ending = "-include /r/rocov_device.h --start-no-unused-arguments \
                  -Xoffload-linker -mllvm=-one=0 -Wl,--device-compiler=-B/r/rdc --end-no-unused-arguments --offload-arch=gfx90a\n";
    assert!(line.ends_with(ending), "{line}");
}

#[test]
fn a_header_path_that_a_shell_would_split_is_refused() {
    let own = Own {
        header: "/a b/rocov_device.h".into(),
        host_headers: None,
        linker: None,
    };
    let probe = ClangProbe {
        options: Vec::new(),
        units_clash: false,
        lacks_runtime: false,
    };
    let error = line(
        Form::Driver,
        Language::Hip,
        &arguments(false, &[]),
        &probe,
        &STOCK,
        &own,
    )
    .unwrap_err();
    assert!(error.to_string().contains("/a b/"), "{error}");
}

/// The words between the instrumentation and the header.
fn counting_words(form: Form, counting: &Counting) -> String {
    let nothing = ClangProbe {
        options: Vec::new(),
        units_clash: false,
        lacks_runtime: false,
    };
    let line = line(
        form,
        Language::Hip,
        &arguments(false, &[]),
        &nothing,
        counting,
        &own(false),
    )
    .unwrap();
    let line = String::from_utf8(line).unwrap();
    let (_, rest) = line.split_once("=atomic").unwrap();
    let (words, _) = rest.split_once(" -include ").unwrap();
    words.trim().to_owned()
}

#[test]
fn a_plugin_is_for_the_device() {
    let counting = Counting {
        way: Way::Fast("/r/librocov_pass-22.so".into()),
        names: None,
        uniformity: false,
    };
    let plugin = "-Xarch_device -fpass-plugin=/r/librocov_pass-22.so";
    assert_eq!(counting_words(Form::Driver, &counting), plugin);
    assert_eq!(
        counting_words(Form::FrontEnd, &counting),
        format!(
            "-DROCOV_DEVICE_INSTRUMENTED --start-no-unused-arguments {plugin} --end-no-unused-arguments"
        )
    );
}

#[test]
fn uniform_counters_are_asked_for_by_a_macro_that_only_the_plugin_needs() {
    let words = |way| {
        let counting = Counting {
            way,
            names: None,
            uniformity: true,
        };
        counting_words(Form::Driver, &counting)
    };
    assert_eq!(
        words(Way::Fast("/r/librocov_pass-23.so".into())),
        "-Xarch_device -fpass-plugin=/r/librocov_pass-23.so -DROCOV_UNIFORMITY"
    );
    assert_eq!(words(Way::Llvm), "");
}

#[test]
fn each_element_of_hiprtcs_options_has_a_line_whatever_its_spaces() {
    let words = ["-I/a b".into(), "-include".into()];
    assert_eq!(hiprtc::lines(&words).unwrap(), b"-I/a b\n-include\n");
    let error = hiprtc::lines(&["-I/a\nb".into()]).unwrap_err();
    assert!(error.to_string().contains("line break"), "{error}");
}
