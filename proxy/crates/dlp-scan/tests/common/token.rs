//! A value that a rule finds by itself.

/// A token with the checksum that its maker gives it.
pub fn token() -> String {
    let body = "Zq7kW2m9XvT4rByLp0QeHs6JuN3dFa";
    let mut sum = crc32fast::hash(body.as_bytes());
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut tail = [0; 6];
    for place in tail.iter_mut().rev() {
        *place = digits[sum as usize % 62];
        sum /= 62;
    }
    format!("ghp_{body}{}", String::from_utf8_lossy(&tail))
}
