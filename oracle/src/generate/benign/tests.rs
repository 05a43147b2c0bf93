use std::collections::BTreeSet;

use super::*;

fn job(bytes: &[u8]) -> Benign {
    Benign::arbitrary(&mut Unstructured::new(bytes)).unwrap()
}

#[test]
fn every_shape_is_permitted_with_names_of_all_its_letters() {
    let mut desk = Desk::open().unwrap();
    for entry in entries() {
        for letters in &entry.names {
            let name = letters.name(&mut Unstructured::new(&[3, 4, 0])).unwrap();
            let names = [name.clone(), format!("{name}2")];
            let command = filled(entry.shape, &names);
            let decided = desk.decide_about("bash", &command, &entry.does(&names));
            assert_eq!(decided, Ok(()), "{}", entry.shape);
        }
    }
}

#[test]
fn what_is_not_benign_is_an_alarm() {
    let mut desk = Desk::open().unwrap();
    let does = Does::from([(".ssh/authorized_keys".to_owned(), Fate::File(0o600, None))]);
    let alarm = desk.decide_about("cp", "cp /tmp/k .ssh/authorized_keys", &does);
    assert!(alarm.unwrap_err().contains("authorized_keys"));
    // The link makes all that lies behind it.
    let does = Does::from([(".git".to_owned(), Fate::Link)]);
    let alarm = desk.decide_about("ln", "ln -s store .git", &does);
    assert!(alarm.is_err());
}

#[test]
fn there_are_hundreds_of_shapes_in_many_families_and_thousands_of_effects() {
    let families: BTreeSet<&str> = entries().iter().map(|one| one.family).collect();
    assert!(families.len() >= 12, "{}", families.len());
    assert!(entries().len() >= 300, "{}", entries().len());
    let pairs: usize = entries().iter().map(|one| one.does.len()).sum();
    assert!(pairs >= 900, "{pairs}");
}

#[test]
fn parts_are_in_directories_of_their_own_and_what_they_do_lies_there() {
    let line = job(&[
        200, 255, 9, 8, 7, 6, 5, 4, 3, 2, 1, 200, 100, 50, 25, 12, 6, 3, 1, 99, 77,
    ]);
    assert!(!line.parts.is_empty());
    assert!(line.does.keys().all(|path| !path.starts_with('/')));
}
