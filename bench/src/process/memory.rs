//! Memory of a process tree: the proportional set size, which splits shared pages among those that share them, so that
//! the sum over a tree is neither too high nor too low.

use super::tree;
use std::fs;

/// PSS of a tree in bytes, `None` when the kernel does not tell us (another user's process).
pub fn pss_of_tree(root: u32) -> Option<u64> {
    let each = tree(root).into_iter().filter_map(|pid| {
        field_kib(
            &fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?,
            "Pss:",
        )
    });
    let sum: u64 = each.sum();
    (sum > 0).then_some(sum * 1024)
}

/// The highest resident size each process of the tree ever had, summed, in bytes.
pub fn peak_rss_of_tree(root: u32) -> Option<u64> {
    let each = tree(root).into_iter().filter_map(|pid| {
        field_kib(
            &fs::read_to_string(format!("/proc/{pid}/status")).ok()?,
            "VmHWM:",
        )
    });
    let sum: u64 = each.sum();
    (sum > 0).then_some(sum * 1024)
}

fn field_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_text() {
        let text = "55-7f ---p 0 00:00 0 [rollup]\nRss:     1776 kB\nPss:      338 kB\nPss_Dirty:   112 kB\n";
        assert_eq!(field_kib(text, "Pss:"), Some(338));
        assert_eq!(field_kib(text, "VmHWM:"), None);
        assert_eq!(field_kib("Pss: x kB", "Pss:"), None);
    }

    #[test]
    fn this_process_grows_with_what_it_touches() {
        let before = pss_of_tree(std::process::id()).unwrap();
        let block = std::hint::black_box(vec![1u8; 32 << 20]);
        let after = pss_of_tree(std::process::id()).unwrap();
        assert!(after > before + (24 << 20), "{before} {after}");
        assert!(peak_rss_of_tree(std::process::id()).unwrap() > block.len() as u64);
    }
}
