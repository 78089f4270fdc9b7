/// Made for these tests; protects nothing.
enum TestKeys {
  static let p256 = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg1KnRB0wd1astiy4C
    wDATewjZvav+JIma5TUHrRXWi7+hRANCAATrVFCUOrNezLD1b4OfY4YDdiEyFNwR
    Ebf9D3cfu1s2bKbHbSdE3GUPFHrrUW8VvbmWRuRfOVmzFilEqlOytLOc
    -----END PRIVATE KEY-----
    """
}
