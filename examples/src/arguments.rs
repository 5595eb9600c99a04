//! What clap cannot say.

/// A number from 1 up. Not clap's range, whose message names the largest `u64`.
///
/// # Errors
///
/// What is wrong with `text`.
pub fn at_least_one(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        // `-1` is a number, only none that will do.
        Err(_) if text.parse::<i128>().is_ok_and(|number| number < 0) => {
            Err("must be at least 1".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}
