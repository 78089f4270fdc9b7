import Testing
import TrunklineBytes

@testable import PushPolicy

@Suite struct CallerSealingTests {
  private func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.utf8.compactMap { hexDigit($0) }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
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
