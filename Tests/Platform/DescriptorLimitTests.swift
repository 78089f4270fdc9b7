import Testing
import TrunklinePlatform

@Suite struct DescriptorLimitTests {
  @Test(arguments: [
    (256, 2_000, 96, 96), (1_024, 2_000, 384, 384), (20_000, 2_000, 2_000, 17_488), (1_048_576, 2_000, 2_000, 1_046_064),
  ])
  func `calls get what they may need but half at most, apps the rest`(total: Int, wanted: Int, calls: Int, apps: Int) {
    let limit = DescriptorLimit(total: total, calls: wanted)
    #expect(limit.calls == calls && limit.apps == apps)
  }
}
