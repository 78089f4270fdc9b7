import Bytes
import Testing

@testable import PushPolicy

@Suite struct CallerSealingTests {
  private func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.utf8.compactMap { hexDigit($0) }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  /// RFC 9180, A.1.1: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, mode base, first encryption.
  @Test func `E2E-2: a caller is sealed as RFC 9180 does it (A.1.1)`() throws {
    let sealed = CallerSealing.seal(
      bytes("4265617574792069732074727574682c20747275746820626561757479"),
      for: bytes("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d"),
      info: bytes("4f6465206f6e2061204772656369616e2055726e"), authenticating: bytes("436f756e742d30"),
      scalar: bytes("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736"))
    #expect(
      sealed.map { hexString($0) } == "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431"
        + "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a")
  }

  @Test func `E2E-2: a short name and a long one give the same length, and two pushes of one call nothing alike`() throws {
    let key = bytes("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d")
    let target = PushTarget(.apns, token: Rig.token, sealKey: key)
    let random = RandomSource.seeded(1)
    let sealed = ["Al", "Alexandra Constantinou", nil].map { name in
      var push = Rig.push(1, name: name)
      push.sealCaller(for: target, random)
      return push.sealedCaller ?? ""
    }
    #expect(Set(sealed.map(\.count)).count == 1 && Set(sealed).count == 3 && Set(sealed.map { $0.prefix(43) }).count == 3)
    var plain = Rig.push(1)
    plain.sealCaller(for: Rig.iPhone, random)
    #expect(plain.sealedCaller == nil)
  }
}
