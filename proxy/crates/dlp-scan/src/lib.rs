//! dlp-scan
