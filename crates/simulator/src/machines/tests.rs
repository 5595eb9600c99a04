use super::*;

#[test]
fn every_machine_is_possible() {
    for name in NAMES {
        let machine = by_name(name).unwrap();
        assert_eq!(machine.check(), Ok(()));
        assert_eq!(machine.name, name);
    }
}

#[test]
fn a_name_like_none_gets_the_list() {
    let said = by_name("cray").unwrap_err().to_string();
    assert!(said.ends_with(
        "there are symmetry-a, symmetry-b, challenge, firefly, makbilan, modern, modern-2s"
    ));
}

#[test]
fn any_number_of_processors_up_to_the_limit_is_possible() {
    for processors in [1, 2, 63, 64, 65, 1_024] {
        for machine in [symmetry_a(processors), symmetry_b(processors), modern(processors)] {
            assert_eq!(machine.check(), Ok(()));
        }
    }
    assert!(symmetry_a(1_025).check().is_err());
}
