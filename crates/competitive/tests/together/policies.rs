//! The table of the policies has each policy of the crate.

use std::fs;
use std::path::Path;

/// Expands to the policy of each row that has one.
macro_rules! policies {
    ([] $({
        $test:ident: $policy:ty,
        name: $name:literal,
        public: [$($public:ident $(::$new:ident)?)?],
        $($rest:tt)*
    })+) => {
        &[$($(stringify!($public),)?)+]
    };
}

const REGISTERED: &[&str] = stanchion_competitive::__policies!(policies);

/// Returns the types that implement `Policy` in this source. Examples in comments do not count.
fn policies_in(source: &str) -> impl Iterator<Item = &str> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.filter_map(|line| line.split_once(" Policy for ")).map(|(_, rest)| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

/// Returns the policies of this source that the table does not have.
fn missing(source: &str) -> Vec<&str> {
    policies_in(source).filter(|policy| !REGISTERED.contains(policy)).collect()
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no files")]
fn each_policy_has_a_row() {
    let mut found = 0;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/policy")).unwrap() {
        let path = entry.unwrap().path();
        let source = fs::read_to_string(&path).unwrap();
        let missing = missing(&source);
        assert!(
            missing.is_empty(),
            "{}: {missing:?} has no row in src/policy/table.rs",
            path.display()
        );
        found += policies_in(&source).count();
    }
    assert_eq!(found, REGISTERED.len(), "a policy is not found in the sources, or found twice");
}

#[test]
fn a_policy_without_a_row_is_found() {
    assert_eq!(missing("impl<const STEP: u32> Policy for Unregistered<STEP> {}"), ["Unregistered"]);
    assert!(missing("impl Policy for AlwaysBlock {}").is_empty());
    assert!(missing("/// impl Policy for Example {}").is_empty());
}
