import Testing
import TrunklineBytes

@testable import PushPolicy

/// APNs' certificate mode (SRV-8): the contents of the files, and the result of a push whose certificate is refused.
@Suite struct ClientCertificateTests {
  @Test func `a certificate with its key says when it expires`() throws {
    let read = try ClientCertificate(certificate: Array(Self.certificate.utf8), key: Array(Self.key.utf8))
    #expect(read.expires == 4_102_444_800, "2100-01-01")
  }

  @Test func `what cannot be used is named`() {
    let (certificate, key) = (Array(Self.certificate.utf8), Array(Self.key.utf8))
    let rows: [([UInt8], [UInt8], ClientCertificate.Problem)] = [
      ([], key, .noCertificate), (key, key, .noCertificate), (certificate, [], .noKey), (certificate, certificate, .noKey),
      (certificate, Array(Self.lockedKey.utf8), .noKey), (certificate, Array(TestKeys.p256.utf8), .otherKey),
    ]
    for (certificate, key, problem) in rows {
      #expect(throws: problem) { try ClientCertificate(certificate: certificate, key: key) }
    }
  }

  @Test func `a word about our certificate ends the push at once; a guess is tried once more, then it is a fault too`() throws {
    for (reason, sends) in [
      ("Failure when receiving data from the peer (TLS alert: certificate expired)", 1),
      ("SSL connect error, after our certificate was shown (TLS alert: unknown ca)", 1),
      ("Problem with the local SSL certificate", 1), ("Failed sending data to the peer, after our certificate was shown", 2),
    ] {
      var rig = try Rig()
      rig.wake()
      for _ in 0..<sends { rig.feed(.broke(try #require(rig.sent.last).attempt, reason: reason)) }
      let report = try #require(rig.reports.first, "\(reason)")
      #expect(rig.sent.count == sends && report.isFault && report.attempts == sends, "\(reason)")
      #expect(PushAdvice.text(report)?.contains("push.apns.certificate") == true, "\(reason)")
    }
    var rig = try Rig()
    rig.wake()
    for index in 0..<2 { rig.feed(.broke(rig.sent[index].attempt, reason: "Couldn't connect (TLS alert: internal error)")) }
    #expect(rig.reports.first?.isFault == false && rig.sent.count == 2)
  }

  // Made for these tests; they protect nothing.
  private static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBKjCB0aADAgECAgEHMAoGCCqGSM49BAMCMB4xHDAaBgNVBAMME1ZvSVAgU2Vy
    dmljZXM6IHRlc3QwIBcNMjYwMTAxMDAwMDAwWhgPMjEwMDAxMDEwMDAwMDBaMB4x
    HDAaBgNVBAMME1ZvSVAgU2VydmljZXM6IHRlc3QwWTATBgcqhkjOPQIBBggqhkjO
    PQMBBwNCAASjOxbLlAo0T7S2STS0O05QBjFai8gpMrzQt3QhdFzZ76HysEN8w+Up
    tIeddfW4EVHrPV/Z8aFYBi8hd+aIA9Q/MAoGCCqGSM49BAMCA0gAMEUCIHAW0MCV
    uMCOD8TbJCxBKf5YZeQNREAqF9FlNVu+tTL8AiEA5iEdnEM3G4uGeH4MQ1pUxNpC
    vpkhQBL6yw25fzuRptA=
    -----END CERTIFICATE-----

    """
  private static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgSEjuEQw7xKgnPUJt
    6VrUHgJuNN9OJQTSExCMm8Vmr82hRANCAASjOxbLlAo0T7S2STS0O05QBjFai8gp
    MrzQt3QhdFzZ76HysEN8w+UptIeddfW4EVHrPV/Z8aFYBi8hd+aIA9Q/
    -----END PRIVATE KEY-----

    """
  /// With a password.
  private static let lockedKey = """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIH0MF8GCSqGSIb3DQEFDTBSMDEGCSqGSIb3DQEFDDAkBBBz1Z5tRE12J8ZR6tcr
    68JxAgIIADAMBggqhkiG9w0CCQUAMB0GCWCGSAFlAwQBKgQQUnzYrDIui2I24cx/
    9jS8kASBkPWrcdDaoQ4KBAUkXnLGWX0h+Qws23VhSAOz9/FEOWsRyUGuc1Ja8iCw
    gJWA9T2hNA5D4AjTceTJR/7vpxq2WbMv3I44Rs/NmZRr/G+4f7kfZcgKX47EaMFx
    s5XZZzPUsC5j2QszGDM3KxLUCX+AjN7H19f8Qr6r7bjCwnowmc8SgxGp0iAlNjyY
    8JAk2yUsbA==
    -----END ENCRYPTED PRIVATE KEY-----

    """
}
