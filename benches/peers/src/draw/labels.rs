//! Keeps labels apart.

/// Moves each position as little as needed so that neighbours are `gap` apart and all are within
/// `top..=bottom`, as far as there is room. They are in ascending order before and after.
pub(super) fn keep_apart(positions: &mut [i32], gap: i32, top: i32, bottom: i32) {
    let mut least = top;
    for position in positions.iter_mut() {
        *position = (*position).max(least);
        least = *position + gap;
    }
    let mut most = bottom;
    for position in positions.iter_mut().rev() {
        *position = (*position).min(most);
        most = *position - gap;
    }
}

#[cfg(test)]
mod tests {
    use super::keep_apart;

    fn kept_apart<const N: usize>(mut positions: [i32; N]) -> [i32; N] {
        keep_apart(&mut positions, 10, 0, 100);
        positions
    }

    #[test]
    fn what_is_apart_stays() {
        assert_eq!(kept_apart([5, 20, 90]), [5, 20, 90]);
    }

    #[test]
    fn neighbours_make_room() {
        assert_eq!(kept_apart([20, 22, 40]), [20, 30, 40]);
        assert_eq!(kept_apart([95, 98, 99]), [80, 90, 100]);
        assert_eq!(kept_apart([-5, -4]), [0, 10]);
    }
}
