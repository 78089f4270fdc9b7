/// Made for these tests; protects nothing.
enum TestKeys {
  static let p256 = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg1KnRB0wd1astiy4C
    wDATewjZvav+JIma5TUHrRXWi7+hRANCAATrVFCUOrNezLD1b4OfY4YDdiEyFNwR
    Ebf9D3cfu1s2bKbHbSdE3GUPFHrrUW8VvbmWRuRfOVmzFilEqlOytLOc
    -----END PRIVATE KEY-----
    """
  static let other = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgPVVBNW2RCZYP7XHr
    lCQuHuEhmguB2MPPGbFiReKACfmhRANCAATaMQHSFVS6eulzG/R1SWyUGjv6Tq9s
    3peNLGJbdnIXJpjL3/NVAsUVFubm/KmALOpu3doYyzgGAc3Wj3xkY/n0
    -----END PRIVATE KEY-----
    """
}
