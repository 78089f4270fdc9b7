import ArgumentParser
import Bytes
import Foundation
import Peers

extension LoadCommand {
  /// More and more calls, each number with a new gateway, then 1.5 times too many.
  func runSteps() throws {
    let numbers = steps.split(separator: ",").compactMap { Int($0) }.filter { $0 > 0 }
    guard !numbers.isEmpty else { throw ValidationError("--steps \(steps): as in 20,40,60") }
    let cores = Cores.allowed
    var result = LoadSteps()
    result.hasOwnCore = cores.count > 1 && Cores.bind(to: Array(cores.dropLast()))
    let core = result.hasOwnCore ? cores.last : nil
    complain(LoadStep.heading)
    for number in numbers {
      let step = try runStep(number, core, mayBeRefused: false)
      result.steps.append(step)
      guard step.isCarried || step.isVoid else { break }
    }
    if let most = result.steps.map(\.connected).max(), most > 0 {
      // Beyond what it took at most, so that there is something to refuse.
      result.overload = try runStep(Int((Double(most) * 1.5).rounded(.up)), core, mayBeRefused: true)
    }
    result.conclude()
    print(json ? try Self.encoded(result) : result.table)
  }

  private func runStep(_ calls: Int, _ core: Int32?, mayBeRefused: Bool) throws -> LoadStep {
    let gateway = try LoadGateway(calls: calls, core: core)
    defer { gateway.end() }
    let report = try play(gateway.settings, calls: calls, seconds: seconds, pid: gateway.pid, mayBeRefused: true)
    let step = LoadStep(report)
    complain(step.line + (mayBeRefused ? "  1.5 × capacity" : ""))
    return step
  }
}
