import Testing

@testable import Peers
@testable import trunkline_lab

/// What `trunkline-lab load` says of a step, and how it is stopped.
@Suite struct LoadStepsTests {
  private func result(of connected: Int, heard: Bool = true, clipped: Int = 0) -> LoadResult {
    var result = LoadResult()
    (result.asked, result.connected) = (4, connected)
    result.scores = [
      .init(
        call: "a", direction: "trunk to app", delayMilliseconds: 40, levelDecibels: 0, heardShare: heard ? 1 : 0.85,
        similarity: 0.9,
        clippedStartMilliseconds: clipped, heardSpeech: heard)
    ]
    return result
  }

  @Test func `a step is carried if all calls are connected and all speech is well heard, else it says why not`() {
    let good = LoadStep(LoadReport(result(of: 4)))
    #expect(good.isCarried && good.line(isOverload: false).hasSuffix("1/1  carried"))
    #expect(LoadStep(LoadReport(result(of: 3))).shortcomings == ["1 not connected"])
    #expect(LoadStep(LoadReport(result(of: 4, heard: false))).shortcomings == ["1 of 1 with bad speech"])
    let clipped = LoadStep(LoadReport(result(of: 4, clipped: 60)))
    #expect(clipped.line(isOverload: false).hasSuffix("0/1  not carried: 1 of 1 with bad speech"))
    #expect(clipped.badScores.count == 1)
  }

  @Test func `a step in which the load was late says nothing, and the summary says so`() {
    var late = result(of: 4)
    late.ownLatenessP99 = 3
    var steps = LoadSteps()
    steps.steps = [LoadStep(LoadReport(late)), LoadStep(LoadReport(result(of: 4)))]
    steps.conclude()
    #expect(steps.steps[0].line(isOverload: false).contains("VOID"))
    #expect(steps.callsPerCore == 4 && steps.table.contains("1 of 2 steps are void"))
  }

  @Test func `steps are numbers above zero`() {
    #expect(LoadSteps.numbers("20,40") == [20, 40])
    for bad in ["", "5,x", "0", "5,,6", "-1", "99999999999999999999"] { #expect(LoadSteps.numbers(bad) == nil, "\(bad)") }
  }

  @Test func `from the first number that is too many it goes back by halves until the most is known to 5 percent`() {
    func step(_ calls: Int, carries: Int) -> LoadStep {
      var result = result(of: min(calls, carries))
      result.asked = calls
      return LoadStep(LoadReport(result))
    }
    for (carries, known) in [(175, 175), (150, 150), (1, 1), (90, 90)] {
      var steps = LoadSteps()
      for calls in [1, 60, 140, 220] {
        steps.steps.append(step(calls, carries: carries))
        if calls > carries { break }
      }
      while let calls = steps.between { steps.steps.append(step(calls, carries: carries)) }
      steps.conclude()
      #expect(steps.callsPerCore <= known && Double(known - steps.callsPerCore) <= 0.05 * Double(known), "\(steps.callsPerCore)")
      #expect(steps.steps.count < 12)
    }
    var nothing = LoadSteps()
    nothing.steps = [step(20, carries: 10)]
    #expect(nothing.between == nil)
  }
}
