import CommandSupport
import Foundation
import Glibc
import Synchronization
import TrunklinePlatform

/// Watches the gateway from outside during a load run: its metrics, added up over a cluster's nodes, and its process's memory
/// and CPU once a second while calls are held.
final class GatewayWatch: Sendable {
  struct Sample: Sendable {
    var at: Double
    var residentKilobytes: Double
    var cpuSeconds: Double
  }

  struct Figures: Codable {
    /// CPU of the whole process while all calls were up, as cores and for one call as a share of a core in percent.
    var cpuCores = 0.0
    var cpuPercentPerCall = 0.0
    var residentBeforeMegabytes = 0.0
    var residentFirstMegabytes = 0.0
    var residentLastMegabytes = 0.0
    /// Least squares over the second half of the held time, which begins after the jitter buffers, pools and the DTLS memory have
    /// settled.
    var residentSlopeKilobytesPerMinute = 0.0
    /// From the first to the last sample of that half.
    var residentGrowthMegabytes = 0.0
  }

  private let admins: [AdminClient]
  private let pid: Int32?
  private let samples = Mutex<[Sample]>([])
  private let held = Mutex<Metrics?>(nil)
  private let watching = Atomic<Bool>(false)
  private let running = Atomic<Bool>(true)
  private let before: Sample?
  private let thread = Mutex<NamedThread?>(nil)

  init(_ admins: [AdminClient], pid: Int32?) throws {
    (self.admins, self.pid) = (admins, pid)
    before = pid.flatMap { Self.read($0) }
    let started = try NamedThread.start(name: "watch") { [self] in watch() }
    thread.withLock { $0 = started }
  }

  /// The gateway's metrics when all calls were up.
  var atHold: Metrics? { held.withLock { $0 } }

  /// Records the first and the last sample here, so that also a run of less than a second has both.
  func watch(_ on: Bool) {
    if let pid, let sample = Self.read(pid) { samples.withLock { $0.append(sample) } }
    watching.store(on, ordering: .relaxed)
  }

  func stop() {
    running.store(false, ordering: .relaxed)
    thread.withLock { $0 }?.join()
  }

  private func watch() {
    while running.load(ordering: .relaxed) {
      // Counters are compared from here on: set-up is over.
      if watching.load(ordering: .relaxed), atHold == nil, let now = try? metrics() { held.withLock { $0 = now } }
      if watching.load(ordering: .relaxed), let pid, let sample = Self.read(pid) { samples.withLock { $0.append(sample) } }
      usleep(watching.load(ordering: .relaxed) ? 1_000_000 : 100_000)
    }
  }

  static func read(_ pid: Int32) -> Sample? {
    guard let status = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8),
      let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }),
      let resident = line.split(separator: " ").dropFirst().first.flatMap({ Double($0) }),
      let end = stat.lastIndex(of: ")")
    else { return nil }
    // proc(5): after the name, utime is the 12th field and stime the 13th.
    let fields = stat[stat.index(after: end)...].split(separator: " ")
    guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return nil }
    let now = Double(MonotonicClock.now().nanoseconds) / 1e9
    return Sample(at: now, residentKilobytes: resident, cpuSeconds: (user + system) / Double(sysconf(Int32(_SC_CLK_TCK))))
  }

  func figures(calls: Int) -> Figures? {
    let collected = samples.withLock { $0 }
    guard let first = collected.first, let last = collected.last, last.at > first.at else { return nil }
    var out = Figures()
    out.cpuCores = (last.cpuSeconds - first.cpuSeconds) / (last.at - first.at)
    out.cpuPercentPerCall = calls > 0 ? out.cpuCores * 100 / Double(calls) : 0
    out.residentBeforeMegabytes = (before?.residentKilobytes ?? 0) / 1024
    out.residentFirstMegabytes = first.residentKilobytes / 1024
    out.residentLastMegabytes = last.residentKilobytes / 1024
    let steady = Array(collected[(collected.count / 2)...])
    out.residentSlopeKilobytesPerMinute = Self.slope(steady) * 60
    out.residentGrowthMegabytes = (last.residentKilobytes - (steady.first ?? last).residentKilobytes) / 1024
    return out
  }

  private static func slope(_ samples: [Sample]) -> Double {
    let count = Double(samples.count)
    let (x, y) = (samples.reduce(0) { $0 + $1.at } / count, samples.reduce(0) { $0 + $1.residentKilobytes } / count)
    let square = samples.reduce(0) { $0 + ($1.at - x) * ($1.at - x) }
    return square > 0 ? samples.reduce(0) { $0 + ($1.at - x) * ($1.residentKilobytes - y) } / square : 0
  }

  // MARK: metrics

  /// All samples of `/metrics` by name with labels, with the kind of their family.
  struct Metrics {
    var values: [String: Double] = [:]
    var kinds: [String: String] = [:]

    init(_ text: String) {
      for line in text.split(separator: "\n") {
        let words = line.split(separator: " ")
        if line.hasPrefix("# TYPE "), words.count == 4 {
          kinds[String(words[2])] = String(words[3])
        } else if !line.hasPrefix("#"), let last = words.last, let value = Double(last) {
          values[String(line.dropLast(last.count + 1))] = value
        }
      }
    }

    func family(_ name: String) -> String { String(name.prefix { $0 != "{" }) }
    var gauges: [String: Double] { values.filter { kinds[family($0.key)] == "gauge" } }
    func sum(_ name: String) -> Double { values.filter { family($0.key) == name }.reduce(0) { $0 + $1.value } }
    func value(_ name: String, label: String) -> Double {
      values.filter { family($0.key) == name && $0.key.contains(label) }.reduce(0) { $0 + $1.value }
    }

    /// The quantile of a histogram's growth since `before`, as the upper bound of its bucket, in the histogram's unit.
    func quantile(_ share: Double, of name: String, since before: Metrics) -> Double {
      let prefix = name + "_bucket{"
      var rows: [(bound: Double, count: Double)] = []
      for (key, value) in values where key.hasPrefix(prefix) {
        guard let start = key.range(of: "le=\"")?.upperBound else { continue }
        let text = key[start...].prefix { $0 != "\"" }
        rows.append((text == "+Inf" ? .infinity : Double(text) ?? .infinity, value - (before.values[key] ?? 0)))
      }
      rows.sort { $0.bound < $1.bound }
      guard let total = rows.last?.count, total > 0 else { return 0 }
      return rows.first { $0.count >= total * share }?.bound ?? 0
    }
  }

  func metrics() throws -> Metrics {
    var all = Metrics("")
    for admin in admins {
      let answer = try admin.request("GET", path: "/metrics")
      guard answer.status == 200 else { throw AdminClient.Failure(description: "/metrics answered \(answer.status)") }
      let one = Metrics(answer.body)
      all.values.merge(one.values, uniquingKeysWith: +)
      all.kinds.merge(one.kinds) { first, _ in first }
    }
    return all
  }
}
