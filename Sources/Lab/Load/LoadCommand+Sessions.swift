import ArgumentParser
import CommandSupport
import Foundation
import Peers
import Synchronization

extension LoadCommand {
  /// Memory that many idle sessions use in a gateway which the load starts.
  struct SessionReport: Codable {
    var run: SessionLoad.Result
    var isSecure: Bool
    var residentBeforeMegabytes: Double
    var residentAtRestMegabytes: Double
    var residentAtEndMegabytes: Double

    var table: String {
      func line(_ name: String, _ times: SessionLoad.Times) -> String {
        String(format: "  %@ p50 %.1f, p99 %.1f, at most %.1f ms (%d)", name, times.p50, times.p99, times.most, times.count)
      }
      var lines = [
        "\(run.asked) sessions\(isSecure ? " over TLS" : ""): \(run.online) online, \(run.onlineAtEnd) at the end",
        String(
          format: "  memory %.1f MB without, %.1f MB with all at rest, %.1f MB at the end", residentBeforeMegabytes,
          residentAtRestMegabytes, residentAtEndMegabytes),
        line("from connect to welcome", run.welcome),
      ]
      if run.welcomeBack.count > 0 {
        lines.append(line("from the cut to welcome, the client's own wait in it:", run.welcomeBack))
      }
      lines.append(line("call.end to its answer, at rest", run.answerAtRest))
      if run.answerInStorm.count > 0 { lines.append(line("call.end to its answer, while all come back", run.answerInStorm)) }
      return (lines + run.problems.prefix(10).map { "  " + $0 }).joined(separator: "\n")
    }
  }

  func runSessions(_ count: Int, _ stop: LoadStop) throws {
    // With two cores or more the gateway has one to itself, so that the load does not use the CPU time that it measures.
    let cores = Cores.allowed
    let hasOwnCore = cores.count > 1 && Cores.bind(to: Array(cores.dropLast()))
    let gateway = try LoadGateway(
      calls: count, core: hasOwnCore ? cores.last : nil, isSecure: tls, descriptors: Descriptors.perSession, stop)
    defer { gateway.end() }
    let pid = gateway.pid
    let resident: @Sendable () -> Double = { (GatewayWatch.read(pid)?.residentKilobytes ?? 0) / 1_024 }
    let before = resident()
    let atRest = Mutex(0.0)
    var options = SessionLoad.Options()
    options.url = Self.url(gateway.settings)
    options.clients = try Self.clients(gateway.settings.users, gateway.settings)
    options.perSecond = rate
    options.hold = .seconds(seconds)
    options.reconnectWithin = .seconds(reconnectWithin)
    let load = SessionLoad(options, progress: { complain($0) }, atRest: { atRest.withLock { $0 = resident() } })
    let result = try stop.during({ try load.run() }, hangUp: { load.stop() })
    let report = SessionReport(
      run: result, isSecure: tls, residentBeforeMegabytes: before, residentAtRestMegabytes: atRest.withLock { $0 },
      residentAtEndMegabytes: resident())
    print(json ? try Self.encoded(report) : report.table)
    if stop.isStopped { throw ExitCode(LoadStop.status) }
    guard result.online == count, result.onlineAtEnd == count, result.problems.isEmpty else { throw ExitCode(1) }
  }
}
