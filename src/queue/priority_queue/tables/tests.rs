//! The arrays of chunks.

use super::*;

/// Pushes numbers, each as a key and as a slot.
fn push(array: &mut KeyArray<usize, u32>, numbers: impl Iterator<Item = usize>) {
    numbers.for_each(|n| array.push(n, n as u32));
}

#[test]
fn what_is_pushed_is_found_and_popped() {
    let mut array = KeyArray::new();
    for n in 0..3 * CHUNK + 7 {
        array.push(n, n as u32);
        assert_eq!(array.len(), n + 1);
    }
    assert!((0..array.len()).all(|n| array.get(n) == (&n, &(n as u32)) && *array.key(n) == n));
    *array.get_mut(CHUNK).0 = 99;
    *array.get_mut(CHUNK).1 = 98;
    assert_eq!(array.get(CHUNK), (&99, &98));
    while array.len() > 0 {
        array.pop();
    }
    assert_eq!(array.len(), 0);
}

/// F22, M74, M98: an element keeps its address when others are inserted.
#[test]
fn no_element_moves_when_an_array_grows() {
    let mut array = KeyArray::new();
    // The first of the second chunk: the first chunk begins small.
    push(&mut array, 0..CHUNK + 1);
    let KeyChunk { keys, slots } = &array.chunks[1];
    assert!(keys.capacity().min(slots.capacity()) >= CHUNK, "they need not grow");
    let addresses = |array: &KeyArray<usize, u32>| {
        let (key, slot) = array.get(CHUNK);
        (std::ptr::from_ref(key), std::ptr::from_ref(slot))
    };
    let before = addresses(&array);
    push(&mut array, 0..10 * CHUNK);
    assert_eq!(before, addresses(&array));
}

/// M97.
#[test]
fn one_spare_chunk_is_kept() {
    let mut array = KeyArray::new();
    push(&mut array, 0..4 * CHUNK);
    (0..2 * CHUNK).for_each(|_| array.pop());
    assert_eq!(array.chunks.len(), 3);
    let spare = array.chunks[2].keys.capacity();
    array.push(1, 1);
    assert_eq!(array.chunks[2].keys.capacity(), spare);
    (0..=2 * CHUNK).for_each(|_| array.pop());
    assert_eq!(array.chunks.len(), 1);
}
