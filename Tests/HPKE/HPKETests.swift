import Testing
import TrunklineBytes
import TrunklineHPKE

@Suite struct HPKETests {
  private func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.utf8.compactMap { hexDigit($0) }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
  private var info: [UInt8] { bytes("4f6465206f6e2061204772656369616e2055726e") }
  private var data: [UInt8] { bytes("436f756e742d30") }
  private var text: [UInt8] { bytes("4265617574792069732074727574682c20747275746820626561757479") }

  /// RFC 9180, A.1.1: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM, mode base, first encryption.
  @Test func `sealed and opened as RFC 9180 does it (A.1.1)`() throws {
    let key = bytes("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d")
    let secret = bytes("4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8")
    let sealed = try #require(
      HPKE.seal(
        text, for: key, info: info, authenticating: data,
        scalar: bytes("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736")))
    #expect(
      hexString(sealed) == "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431"
        + "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a")
    #expect(HPKE.publicKey(of: secret) == key)
    #expect(HPKE.open(sealed, by: secret, info: info, authenticating: data) == text)
  }

  @Test func `what is cut, changed, or for another key, call or purpose is not opened`() throws {
    let random = RandomSource.seeded(4)
    let secret = random.bytes(32)
    let key = try #require(HPKE.publicKey(of: secret))
    let sealed = try #require(HPKE.seal(text, for: key, info: info, authenticating: data, scalar: random.bytes(32)))
    #expect(HPKE.open(sealed, by: secret, info: info, authenticating: data) == text)
    #expect(HPKE.open(sealed, by: random.bytes(32), info: info, authenticating: data) == nil)
    #expect(HPKE.open(sealed, by: secret, info: [], authenticating: data) == nil)
    #expect(HPKE.open(sealed, by: secret, info: info, authenticating: []) == nil)
    for count in 0..<sealed.count {
      #expect(HPKE.open(Array(sealed.prefix(count)), by: secret, info: info, authenticating: data) == nil)
    }
    for index in sealed.indices {
      var changed = sealed
      changed[index] ^= 1
      #expect(HPKE.open(changed, by: secret, info: info, authenticating: data) == nil || index == 31)
    }
  }

  @Test func `keys that are none are refused`() {
    #expect(!HPKE.isUsable(publicKey: []) && !HPKE.isUsable(publicKey: [UInt8](repeating: 0, count: 32)))
    #expect(
      HPKE.seal(
        [1], for: [UInt8](repeating: 0, count: 32), info: [], authenticating: [], scalar: [UInt8](repeating: 1, count: 32)) == nil
    )
    #expect(HPKE.publicKey(of: [1]) == nil && HPKE.open([], by: [], info: [], authenticating: []) == nil)
  }
}
