import BenchKit
import Foundation

/// The cost of a call once it is set up, and of a phone that waits for one: threads, allocations, wake-ups, memory.
struct CallRows {
  let bench: Bench
  let site: Site
  /// A packet or a frame allocates nothing; the rest is STUN consent, reports and statistics, some each second.
  static let mallocsPerFrame = 1.0
  /// Threads that are not the SDK's: the app's main thread and the audio unit's. The engine runs on one of libdispatch's workers
  /// at a time.
  private static func isApps(_ name: String) -> Bool { name == TimedAudio.threadName || name == "main" }

  private var settles: Double { bench.isSmall ? 0.5 : 2 }

  func add() throws {
    try inCall()
    try furtherCalls()
    try idle()
  }

  private func inCall() throws {
    let names = [
      "CPU of a call, narrow band", "allocations of the", "wake-ups a second, in a call", "memory of the process in a call",
    ]
    guard names.contains(where: { bench.wants($0) }) else { return }
    let seconds = bench.isSmall ? 2.0 : 20
    bench.progress("a call of \(Int(seconds)) s, measured in it")
    let report = try call(seconds, traces: false)
    guard let figures = report.figures else { return bench.require(false, "the call was not measured") }
    bench.require(report.loudSamples > 4_000, "the call was not heard: \(report.loudSamples) loud samples")
    let frames = figures.seconds * 50
    let sdk = figures.threads.filter { !Self.isApps($0.key) }
    let cpu = sdk.values.reduce(0) { $0 + $1.cpuMilliseconds } / figures.seconds / 10
    let named = sdk.sorted { $0.value.cpuMilliseconds > $1.value.cpuMilliseconds }.prefix(4).map {
      String(format: "%@ %.2f %%", $0.key, $0.value.cpuMilliseconds / figures.seconds / 10)
    }
    bench.add(
      BenchRow(
        "CPU of a call, narrow band", unit: "% of a core", ours: BenchFigure("ours", cpu), goal: .atMost(1),
        note: named.joined(separator: ", ")))
    bench.require(figures.threads["trunkline-media"] != nil, "no thread is named trunkline-media")
    let media = figures.threads["trunkline-media"] ?? ThreadFigures.Thread()
    let mallocs = Double(media.mallocs) / frames
    bench.add(
      BenchRow(
        "allocations of the media thread in 20 ms", unit: "mallocs", ours: BenchFigure("ours", mallocs), goal: .atMost(0),
        note: "a packet in, a packet out, a frame played"))
    bench.require(
      mallocs <= Self.mallocsPerFrame,
      "the media thread allocates \(mallocs) times in 20 ms, more than \(Self.mallocsPerFrame): bench-client --sites shows where")
    let others = sdk.filter { $0.key != "trunkline-media" }.values.reduce(0) { $0 + $1.mallocs }
    bench.add(
      BenchRow(
        "allocations of engine and socket threads in 20 ms", unit: "mallocs", ours: BenchFigure("ours", Double(others) / frames),
        note: "statistics each second, RTCP's and the session's timers; not on audio's way"))
    let device = figures.threads[TimedAudio.threadName]?.mallocs ?? 0
    bench.require(device == 0, "the audio unit's thread allocated \(device) times in the rings")
    bench.add(
      BenchRow(
        "wake-ups a second, in a call", unit: "1/s",
        ours: BenchFigure("ours", Double(sdk.values.reduce(0) { $0 + $1.wakeUps }) / figures.seconds), goal: .atMost(150),
        note: String(format: "media thread %.0f; without the audio unit's own 50", Double(media.wakeUps) / figures.seconds)))
    bench.add(
      BenchRow(
        "memory of the process in a call", unit: "MB",
        ours: BenchFigure("ours", Double(report.residentKilobytes.first ?? 0) / 1_024), goal: .atMost(45),
        note: "resident, with Foundation and the stand-in of iOS"))
  }

  private func call(_ seconds: Double, traces: Bool) throws -> AppProcess.Report {
    let pushes = try site.pushes()
    let carrier = try site.carrier(talk: seconds + 30)
    defer { carrier.end() }
    var plan = AppProcess.Plan(gateway: site.url)
    (plan.push, plan.measures, plan.traces) = (try pushes.next(), seconds, traces)
    plan.settles = settles
    let app = try site.app(plan)
    defer { app.end(SIGKILL) }
    return try app.report(within: seconds + 20)
  }

  /// Calls set up one after the other at one telephone; none ends before the last.
  private func furtherCalls() throws {
    let count = bench.isSmall ? 3 : 11
    guard bench.wants("memory of a further call") else { return }
    bench.progress("\(count) calls at a time")
    var plan = AppProcess.Plan(gateway: site.url)
    (plan.device, plan.calls, plan.token) = ("many", count, try site.token(device: "many"))
    plan.settles = settles
    let app = try site.app(plan)
    var carriers: [Spawned] = []
    defer {
      app.end(SIGKILL)
      for carrier in carriers { carrier.end() }
    }
    for _ in 0..<count {
      // the carrier's call is refused until the app is online
      let carrier = try site.carrier(talk: 120)
      carriers.append(carrier)
      _ = try carrier.time(of: "answered", within: 15)
      if carriers.count == 1 { _ = try app.line("settled", within: 15) }
    }
    let memory = try app.report(within: 20).residentKilobytes
    guard memory.count == 2 else { return bench.require(false, "\(count) calls were not measured") }
    bench.add(
      BenchRow(
        "memory of a further call", unit: "MB",
        ours: BenchFigure("ours", Double(memory[1] - memory[0]) / 1_024 / Double(count - 1)), goal: .atMost(0.4),
        note: "\(count) calls, \(memory[0] / 1_024) MB with the first"))
  }

  private func idle() throws {
    let seconds = bench.isSmall ? 2.0 : 60
    guard bench.wants("wake-ups a second, online and idle") else { return }
    bench.progress("online and idle for \(Int(seconds)) s")
    var plan = AppProcess.Plan(gateway: site.url)
    (plan.device, plan.token, plan.measures) = ("idle", try site.token(device: "idle"), seconds)
    plan.settles = settles
    let app = try site.app(plan)
    defer { app.end(SIGKILL) }
    let report = try app.report(within: seconds + 15)
    guard let figures = report.figures else { return bench.require(false, "the idle phone was not measured") }
    let threads = figures.threads.filter { !Self.isApps($0.key) }
    let named = threads.filter { $0.value.wakeUps > 0 }.sorted { $0.value.wakeUps > $1.value.wakeUps }.map {
      "\($0.key) \($0.value.wakeUps)"
    }
    bench.add(
      BenchRow(
        "wake-ups a second, online and idle", unit: "1/s",
        ours: BenchFigure("ours", Double(threads.values.reduce(0) { $0 + $1.wakeUps }) / figures.seconds), goal: .atMost(0.5),
        note: "in \(Int(figures.seconds)) s: " + named.joined(separator: ", ")
          + "; one a second is libdispatch's own on Linux, which watches its pool of threads"))
    bench.add(
      BenchRow(
        "memory of the process, online and idle", unit: "MB",
        ours: BenchFigure("ours", Double(report.residentKilobytes.first ?? 0) / 1_024)))
  }

  /// Which call sites of the media thread allocate, and how often in 20 ms.
  func sites() throws {
    let seconds = bench.isSmall ? 2.0 : 5
    let report = try call(seconds, traces: true)
    let frames = (report.figures?.seconds ?? seconds) * 50
    print("allocations of the media thread in 20 ms, by call stack, the innermost first")
    for site in report.sites {
      print(String(format: "%8.2f  ", Double(site.calls) / frames) + site.frames.joined(separator: "\n            "))
    }
  }
}
