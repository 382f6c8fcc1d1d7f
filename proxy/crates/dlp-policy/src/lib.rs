//! dlp-policy
