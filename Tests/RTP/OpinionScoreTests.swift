import Testing
import TrunklineRTP

@Suite struct OpinionScoreTests {
  @Test func `a clean G.711 call is rated 93.2, a mean opinion of 4.41`() {
    let score = OpinionScore(codec: .g711, lossFraction: 0, oneWayDelayMilliseconds: 50)
    #expect(abs(score.rating - 93.2) < 1e-9)
    #expect(abs(score.mean - 4.41) < 0.01)
  }

  @Test func `loss, bursts and delay each lower the rating`() {
    func rating(_ loss: Double, _ burst: Double, _ delay: Double) -> Double {
      OpinionScore(codec: .g711, lossFraction: loss, burstRatio: burst, oneWayDelayMilliseconds: delay).rating
    }
    // Ie,eff = 95 · 5 / (5 + 25.1) at 5 % random loss.
    #expect(abs(rating(0.05, 1, 0) - (93.2 - 475 / 30.1)) < 1e-9)
    #expect(rating(0.05, 2, 0) < rating(0.05, 1, 0))
    #expect(rating(0, 1, 200) < rating(0, 1, 101))
    #expect(abs(rating(0, 1, 400) - 69.13) < 0.01)
    #expect(OpinionScore(codec: .opus, lossFraction: 0.05, oneWayDelayMilliseconds: 0).rating < rating(0.05, 1, 0))
  }

  @Test func `nonsense stays within the scale`() {
    for loss in [-1, 0, 0.5, 1, 2, .nan, .infinity] as [Double] {
      for delay in [-5, 0, 1e3, 1e9, .nan, .infinity] as [Double] {
        for burst in [-1, 1, 50, .nan] as [Double] {
          let score = OpinionScore(codec: .opus, lossFraction: loss, burstRatio: burst, oneWayDelayMilliseconds: delay)
          #expect(score.rating >= 0 && score.rating <= 100)
          #expect(score.mean >= 1 && score.mean <= 4.5)
        }
      }
    }
  }
}
