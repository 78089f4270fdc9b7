import BenchKit
import Glibc
import TrunklineBytes
import TrunklineSRTP

/// `bench-srtp`: one packet protected and unprotected again, per profile and payload size: ours, Debian's libsrtp2, and the bare
/// OpenSSL calls without header parsing, index and replay window. All three must produce the same ciphertext and tag.
@main struct BenchSRTP {
  nonisolated static func main() {
    Bench.main("srtp", about: "SRTP, each profile and length, beside libsrtp2.") { bench in
      for profile in [SRTPProfile.aeadAES128GCM, .aeadAES256GCM, .aes128CM_HMAC_SHA1_80, .aes128CM_HMAC_SHA1_32] {
        for bytes in [80, 160, 480, 1200] { try row(bench, Fixture(profile, payloadBytes: bytes)) }
      }
      for profile in [SRTPProfile.aeadAES128GCM, .aes128CM_HMAC_SHA1_80] {
        try refusals(bench, Fixture(profile, payloadBytes: 160))
      }
    }
  }

  static func row(_ bench: Bench, _ fixture: Fixture) throws {
    try bench.compare(
      "\(fixture.profile.name), \(fixture.payloadBytes) B, protect + unprotect", operations: 20_000, rounds: 15,
      ours: BenchWork("ours") { loop in try ours(fixture, loop) },
      peers: [BenchWork("libsrtp2 \(libsrtpVersion)") { loop in try libsrtp(fixture, loop) }],
      limit: BenchWork("bare EVP") { loop in try bare(fixture, loop) }, goal: .atMost(1.15, of: .limit), sameResult: true)
  }

  private static func ours(_ fixture: Fixture, _ loop: BenchLoop) throws {
    var sender = try SRTPSender(fixture.profile, fixture.master)
    var receiver = try SRTPReceiver(fixture.profile, fixture.master)
    let buffer = fixture.makeBuffer()
    defer { buffer.deallocate() }
    try loop.run { index in
      fixture.number(buffer, index)
      var count = fixture.packetBytes
      try sender.protect(buffer, count: &count)
      let digest = fixture.digest(buffer)
      try receiver.unprotect(buffer, count: &count)
      return digest ^ UInt64(count)
    }
  }

  private static func libsrtp(_ fixture: Fixture, _ loop: BenchLoop) throws {
    let (sender, receiver) = (try LibSRTP(fixture, inbound: false), try LibSRTP(fixture, inbound: true))
    let buffer = fixture.makeBuffer()
    defer { buffer.deallocate() }
    try loop.run { index in
      fixture.number(buffer, index)
      var count = Int32(fixture.packetBytes)
      try sender.protect(buffer, &count)
      let digest = fixture.digest(buffer)
      try receiver.unprotect(buffer, &count)
      return digest ^ UInt64(count)
    }
  }

  private static func bare(_ fixture: Fixture, _ loop: BenchLoop) throws {
    let (sender, receiver) = (try BareEVP(fixture, encrypts: true), try BareEVP(fixture, encrypts: false))
    let buffer = fixture.makeBuffer()
    defer { buffer.deallocate() }
    try loop.run { index in
      fixture.number(buffer, index)
      try sender.protect(buffer, index: UInt64(index))
      let digest = fixture.digest(buffer)
      try receiver.unprotect(buffer, index: UInt64(index))
      return digest ^ UInt64(fixture.packetBytes)
    }
  }

  /// One SSRC as fast as one core can refuse it: packets with a wrong tag, and packets that were seen before.
  private static func refusals(_ bench: Bench, _ fixture: Fixture) throws {
    try bench.compare(
      "\(fixture.profile.name), 160 B, forged packets refused", as: .perSecond(unit: "packets/s"), operations: 20_000,
      ours: BenchWork("ours") { loop in
        var receiver = try SRTPReceiver(fixture.profile, fixture.master)
        let buffer = fixture.makeBuffer()
        defer { buffer.deallocate() }
        loop.run { index in
          fixture.number(buffer, index % 1000 + 2000)
          var count = fixture.packetBytes + fixture.profile.overheadBytes
          return (try? receiver.unprotect(buffer, count: &count)) == nil ? 1 : 0
        }
      })
    try bench.compare(
      "\(fixture.profile.name), 160 B, replayed packets refused", as: .perSecond(unit: "packets/s"), operations: 200_000,
      ours: BenchWork("ours") { loop in
        var sender = try SRTPSender(fixture.profile, fixture.master)
        var receiver = try SRTPReceiver(fixture.profile, fixture.master)
        let buffer = fixture.makeBuffer()
        defer { buffer.deallocate() }
        fixture.number(buffer, 1)
        var count = fixture.packetBytes
        try sender.protect(buffer, count: &count)
        let sealed = count
        try receiver.unprotect(buffer, count: &count)
        loop.run { _ in
          var count = sealed
          return (try? receiver.unprotect(buffer, count: &count)) == nil ? 1 : 0
        }
      })
  }
}
