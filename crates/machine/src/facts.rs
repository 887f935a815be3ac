//! Facts about this machine: CPU model, hypervisor, frequency, idle states, timers.
//!
//! A fact that no file contains is `None`.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::thread::{MembarrierCommand, MembarrierQuery};

use crate::sysfs::text;

/// Model of the CPUs; several models are joined with ` + `.
pub(crate) fn cpu_model(proc: &Path) -> String {
    let cpuinfo = text(proc.join("cpuinfo")).unwrap_or_default();
    let board =
        text(proc.join("device-tree/model")).map(|model| model.trim_end_matches('\0').to_owned());
    model_in(&cpuinfo).or(board).unwrap_or_else(|| format!("unknown {}", std::env::consts::ARCH))
}

fn model_in(cpuinfo: &str) -> Option<String> {
    let values = |wanted: &'static str| {
        cpuinfo.lines().filter_map(move |line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == wanted && !value.trim().is_empty()).then(|| value.trim())
        })
    };
    let mut names: BTreeSet<String> = values("model name").map(str::to_owned).collect();
    if names.is_empty() {
        // On aarch64, each CPU has two lines with codes, in this order.
        let codes = values("CPU implementer").zip(values("CPU part"));
        names = codes.map(|(implementer, part)| arm_core(implementer, part)).collect();
    }
    if names.is_empty() {
        // RISC-V and POWER.
        names = values("uarch").chain(values("cpu")).map(str::to_owned).collect();
    }
    (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join(" + "))
}

/// Common server, cloud and board cores. `lscpu-arm.c` of util-linux has all of them.
fn arm_core(implementer: &str, part: &str) -> String {
    let known = match (implementer, part) {
        ("0x41", "0xd03") => "Cortex-A53",
        ("0x41", "0xd05") => "Cortex-A55",
        ("0x41", "0xd07") => "Cortex-A57",
        ("0x41", "0xd08") => "Cortex-A72",
        ("0x41", "0xd0b") => "Cortex-A76",
        ("0x41", "0xd0c") => "Neoverse-N1",
        ("0x41", "0xd40") => "Neoverse-V1",
        ("0x41", "0xd41") => "Cortex-A78",
        ("0x41", "0xd44") => "Cortex-X1",
        ("0x41", "0xd49") => "Neoverse-N2",
        ("0x41", "0xd4f") => "Neoverse-V2",
        ("0x41", "0xd84") => "Neoverse-V3",
        ("0x41", "0xd8e") => "Neoverse-N3",
        ("0x46", "0x001") => "A64FX",
        ("0x48", "0xd01") => "Kunpeng-920",
        ("0x51", "0x001") => "Oryon",
        ("0xc0", "0xac3") => "Ampere-1",
        ("0xc0", "0xac4") => "Ampere-1a",
        ("0x61", _) => return format!("Apple core {part}"),
        _ => return format!("Arm implementer {implementer} part {part}"),
    };
    known.to_owned()
}

/// The hypervisor; `None` on bare metal, or if none can be detected.
pub(crate) fn hypervisor(sys: &Path, proc: &Path) -> Option<String> {
    if let Some(signature) = cpuid_signature() {
        return Some(hypervisor_named(&signature));
    }
    let file = |path: &str| text(sys.join(path)).unwrap_or_default();
    let kind = file("hypervisor/type");
    if !kind.is_empty() {
        return Some(kind);
    }
    let compatible = text(proc.join("device-tree/hypervisor/compatible")).unwrap_or_default();
    if let Some(first) = compatible.split('\0').next().filter(|first| !first.is_empty()) {
        return Some(first.strip_prefix("linux,").unwrap_or(first).to_owned());
    }
    dmi_hypervisor(&file("class/dmi/id/sys_vendor"), &file("class/dmi/id/product_name"))
}

/// CPUID signatures, from `asm/cpuid.h` and from the hypervisors' documentation.
fn hypervisor_named(signature: &[u8; 12]) -> String {
    let known = match signature {
        b"KVMKVMKVM\0\0\0" | b"Linux KVM Hv" => "kvm",
        b"VMwareVMware" => "vmware",
        b"Microsoft Hv" => "hyper-v",
        b"XenVMMXenVMM" => "xen",
        b"TCGTCGTCGTCG" => "qemu-tcg",
        b"bhyve bhyve " => "bhyve",
        b"ACRNACRNACRN" => "acrn",
        b" lrpepyh vr\0" | b"prl hyperv\0\0" => "parallels",
        b"VBoxVBoxVBox" => "virtualbox",
        b"Jailhouse\0\0\0" => "jailhouse",
        other => {
            let printable =
                other.iter().filter(|byte| byte.is_ascii_graphic()).map(|&byte| char::from(byte));
            let name: String = printable.collect::<String>().to_lowercase();
            return if name.is_empty() { "unknown".into() } else { name };
        }
    };
    known.to_owned()
}

#[cfg(target_arch = "x86_64")]
fn cpuid_signature() -> Option<[u8; 12]> {
    use std::arch::x86_64::__cpuid;
    if __cpuid(1).ecx & 1 << 31 == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let mut signature = [0; 12];
    for (bytes, register) in signature.chunks_exact_mut(4).zip([leaf.ebx, leaf.ecx, leaf.edx]) {
        bytes.copy_from_slice(&register.to_le_bytes());
    }
    Some(signature)
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid_signature() -> Option<[u8; 12]> {
    None
}

fn dmi_hypervisor(vendor: &str, product: &str) -> Option<String> {
    // Clouds mark their bare-metal machines in the product name.
    if product.contains("metal") {
        return None;
    }
    let name = match (vendor, product) {
        ("QEMU", _) | ("Amazon EC2", _) | (_, "KVM") | (_, "KVM Virtual Machine") => "kvm",
        ("Google", "Google Compute Engine") => "kvm",
        ("Microsoft Corporation", "Virtual Machine") => "hyper-v",
        ("innotek GmbH", _) => "virtualbox",
        ("Xen", _) => "xen",
        ("Apple Inc.", product) if product.starts_with("Apple Virtualization") => "apple",
        (vendor, _) if vendor.starts_with("VMware") => "vmware",
        (vendor, _) if vendor.starts_with("Parallels") => "parallels",
        _ => return None,
    };
    Some(name.to_owned())
}

pub(crate) fn governor(sys: &Path, cpus: &[u32]) -> Option<String> {
    let governors: BTreeSet<String> = cpus
        .iter()
        .filter_map(|cpu| {
            text(sys.join(format!("devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")))
        })
        .filter(|governor| !governor.is_empty())
        .collect();
    (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join("+"))
}

/// True if the frequency may exceed its nominal value.
pub(crate) fn boost(sys: &Path) -> Option<bool> {
    let switch = |path: &str| match text(sys.join("devices/system/cpu").join(path))?.as_str() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    };
    switch("intel_pstate/no_turbo").map(|off| !off).or_else(|| switch("cpufreq/boost"))
}

pub(crate) fn idle_driver(sys: &Path) -> Option<String> {
    text(sys.join("devices/system/cpu/cpuidle/current_driver"))
        .filter(|driver| !driver.is_empty() && driver != "none")
}

pub(crate) fn timer_slack_ns() -> Option<u64> {
    rustix::thread::current_timer_slack().ok()
}

/// Registers this process for expedited private membarrier, and returns `true` if it works.
pub(crate) fn membarrier() -> bool {
    let wanted = MembarrierQuery::PRIVATE_EXPEDITED | MembarrierQuery::REGISTER_PRIVATE_EXPEDITED;
    rustix::thread::membarrier_query().contains(wanted)
        && rustix::thread::membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
        && rustix::thread::membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// Load average of the last minute.
pub(crate) fn load(proc: &Path) -> Option<f64> {
    let load: f64 = text(proc.join("loadavg"))?.split(' ').next()?.parse().ok()?;
    load.is_finite().then_some(load)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn models_as_kernels_print_them() {
        let x86 = "processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9B14\n\nprocessor\t: 1\nmodel name\t: AMD EPYC 9B14\n";
        assert_eq!(model_in(x86).as_deref(), Some("AMD EPYC 9B14"));
        let core =
            |part: &str| format!("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: {part}\n\n");
        assert_eq!(model_in(&(core("0xd0c") + &core("0xd0c"))).as_deref(), Some("Neoverse-N1"));
        assert_eq!(
            model_in(&(core("0xd05") + &core("0xd0b"))).as_deref(),
            Some("Cortex-A55 + Cortex-A76")
        );
        assert_eq!(model_in(&core("0xfff")).as_deref(), Some("Arm implementer 0x41 part 0xfff"));
        assert_eq!(model_in("hart : 0\nuarch : sifive,u74-mc\n").as_deref(), Some("sifive,u74-mc"));
        assert_eq!(model_in("model name :\n"), None);
        assert!(cpu_model(Path::new("/nonexistent")).starts_with("unknown "));
    }

    #[test]
    fn hypervisors_by_their_signatures_and_their_firmware() {
        assert_eq!(hypervisor_named(b"KVMKVMKVM\0\0\0"), "kvm");
        assert_eq!(hypervisor_named(b"Microsoft Hv"), "hyper-v");
        assert_eq!(hypervisor_named(b"NewThing 1.0"), "newthing1.0");
        assert_eq!(hypervisor_named(&[0; 12]), "unknown");
        let by_firmware = |vendor, product| dmi_hypervisor(vendor, product);
        assert_eq!(by_firmware("Amazon EC2", "m7g.large").as_deref(), Some("kvm"));
        assert_eq!(by_firmware("Amazon EC2", "m7g.metal"), None);
        assert_eq!(by_firmware("VMware, Inc.", "VMware20,1").as_deref(), Some("vmware"));
        assert_eq!(by_firmware("Dell Inc.", "PowerEdge R7625"), None);
        assert_eq!(by_firmware("", ""), None);
    }

    #[test]
    fn frequency_and_idle_states() {
        let sys = tempfile::tempdir().unwrap();
        let cpu = sys.path().join("devices/system/cpu");
        let put = |path: &str, text: &str| {
            let path = cpu.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(
            (governor(sys.path(), &[0, 1]), boost(sys.path()), idle_driver(sys.path())),
            (None, None, None)
        );
        put("cpu0/cpufreq/scaling_governor", "performance\n");
        assert_eq!(governor(sys.path(), &[0, 1]).as_deref(), Some("performance"));
        put("cpu1/cpufreq/scaling_governor", "powersave\n");
        assert_eq!(governor(sys.path(), &[0, 1]).as_deref(), Some("performance+powersave"));
        put("cpufreq/boost", "1\n");
        assert_eq!(boost(sys.path()), Some(true));
        put("intel_pstate/no_turbo", "1\n");
        assert_eq!(boost(sys.path()), Some(false));
        put("cpuidle/current_driver", "none\n");
        assert_eq!(idle_driver(sys.path()), None);
        put("cpuidle/current_driver", "intel_idle\n");
        assert_eq!(idle_driver(sys.path()).as_deref(), Some("intel_idle"));
    }

    #[test]
    fn load_is_the_average_of_the_last_minute() {
        let proc = tempfile::tempdir().unwrap();
        assert_eq!(load(proc.path()), None);
        fs::write(proc.path().join("loadavg"), "1.73 1.72 1.07 2/345 6789\n").unwrap();
        assert_eq!(load(proc.path()), Some(1.73));
        fs::write(proc.path().join("loadavg"), "nan\n").unwrap();
        assert_eq!(load(proc.path()), None);
    }
}
