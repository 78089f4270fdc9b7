import ArgumentParser
import CommandSupport
import Foundation
import Peers
import TrunklineBytes

extension LoadCommand {
  /// Runs steps with more and more calls, each with a new gateway, then smaller ones by halving the distance from the first
  /// that is too many, then one with 1.5 times the most that connected.
  func runSteps(_ stop: LoadStop) throws {
    let numbers = LoadSteps.numbers(steps) ?? []
    let cores = Cores.allowed
    var result = LoadSteps()
    result.hasOwnCore = cores.count > 1 && Cores.bind(to: Array(cores.dropLast()))
    let core = result.hasOwnCore ? cores.last : nil
    complain(
      "\(numbers.count) \(numbers.count == 1 ? "step" : "steps") and one of 1.5 × as many calls, at most "
        + "\(Int((duration(of: numbers) / 60).rounded(.up))) min"
        + (result.hasOwnCore ? "" : "; gateway and load share their cores"))
    complain(LoadStep.heading)
    for number in numbers {
      guard let step = try runStep(number, core, isOverload: false, stop) else { break }
      result.steps.append(step)
      guard step.isCarried || step.isVoid else { break }
    }
    while let number = result.between, let step = try runStep(number, core, isOverload: false, stop) { result.steps.append(step) }
    if let most = result.steps.map(\.connected).max(), most > 0 {
      // More calls than it carried at most, so that it refuses some.
      result.overload = try runStep(Int((Double(most) * 1.5).rounded(.up)), core, isOverload: true, stop)
    }
    result.conclude()
    if json || !result.steps.isEmpty { print(json ? try Self.encoded(result) : result.table) }
    if stop.isStopped { throw ExitCode(LoadStop.status) }
  }

  /// Seconds that the steps take at most: sessions, calls one after the other, the time they are held, their ends.
  private func duration(of numbers: [Int]) -> Double {
    let all = numbers + [((numbers.max() ?? 0) * 3 + 1) / 2]
    return all.reduce(0) { $0 + Double($1) / LoadGenerator.loginsPerSecond + Double($1) * 1.5 / rate + seconds + 3 }
  }

  /// Nil if the run was stopped: the step's figures would cover another time than the others'.
  private func runStep(_ calls: Int, _ core: Int32?, isOverload: Bool, _ stop: LoadStop) throws -> LoadStep? {
    if stop.isStopped { return nil }
    let gateway = try LoadGateway(calls: calls, core: core, isWide: wide, stop)
    defer { gateway.end() }
    if stop.isStopped { return nil }
    let report = try play([gateway.settings], calls: calls, seconds: seconds, pid: gateway.pid, mayBeRefused: true, stop) { _ in }
    if stop.isStopped {
      complain("the step of \(calls) calls was not finished and is left out")
      return nil
    }
    let step = LoadStep(report)
    complain(step.line(isOverload: isOverload))
    for problem in report.run.problems.prefix(3) { complain("        " + problem) }
    return step
  }
}
