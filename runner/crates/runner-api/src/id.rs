//! Identifiers that the runner makes or checks.

use domain::id;

id!(
    /// SHA-256 of an uploaded bundle, 64 lower-case hexadecimal digits.
    BundleId, 64, 64, "0-9 and a-f", |c| c.is_ascii_digit() || ('a'..='f').contains(&c)
);
id!(
    /// SHA-256 over everything that a layer was built from, 64 lower-case hexadecimal digits.
    LayerId, 64, 64, "0-9 and a-f", |c| c.is_ascii_digit() || ('a'..='f').contains(&c)
);
id!(
    /// One sandbox. Random, made by the runner; it stands in names of cgroups and namespaces.
    SandboxId, 12, 32, "a-z and 0-9", |c| c.is_ascii_lowercase() || c.is_ascii_digit()
);
id!(
    /// One lease. Random, made by the runner.
    LeaseId, 12, 64, "a-z and 0-9", |c| c.is_ascii_lowercase() || c.is_ascii_digit()
);
id!(
    /// A caller's program, for as long as it runs: random, made by its client, said on each of its connections.
    CallerId, 12, 64, "a-z and 0-9", |c| c.is_ascii_lowercase() || c.is_ascii_digit()
);
id!(
    /// Which session a lease belongs to. The gateway makes it; it is no credential here.
    SessionKey, 1, 128, "a-z, A-Z, 0-9, '-' and '_'",
    |c| c.is_ascii_alphanumeric() || c == '-' || c == '_'
);
id!(
    /// The name of a secret: the file under `/run/secrets`, so it is one path component and never hidden.
    SecretName, 1, 64, "A-Z, a-z, 0-9 and '_'", |c| c.is_ascii_alphanumeric() || c == '_'
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_name_is_one_plain_path_component() {
        for good in ["A", "MY_API_KEY", "a1"] {
            assert!(SecretName::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "a b",
            "a\0",
            "a-b",
            "é",
            &"x".repeat(65),
        ] {
            assert!(SecretName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn hashes_are_lower_case_and_whole() {
        assert!(BundleId::parse(&"0f".repeat(32)).is_ok());
        for bad in ["0F".repeat(32), "0f".repeat(31), "0g".repeat(32)] {
            assert!(BundleId::parse(&bad).is_err(), "{bad}");
        }
    }
}
