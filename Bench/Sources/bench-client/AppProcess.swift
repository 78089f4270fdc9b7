import AppleStandIn
import BenchKit
import Foundation
import Glibc
import Observation
import Synchronization
import TrunklineCallKit
import TrunklineClient

/// The app: this program again, as a separate process. It follows a plan and ends with one line of JSON.
@MainActor final class AppProcess {
  struct Plan: Codable {
    enum Tap: String, Codable {
      /// After the call has rung and its media is ready.
      case warm
      /// As soon as the call is on the screen, before a socket exists.
      case early
    }
    var gateway: String
    var device = "cell"
    /// The login token; without it the app connects with the push alone.
    var token: String?
    /// The push that started the process.
    var push: String?
    var tap = Tap.warm
    /// With a value, the app shows its calls itself (`NoCallSystem`), so many at a time.
    var calls: Int?
    /// Seconds for which the app measures its threads once it is settled: in the call, or idle.
    var measures: Double?
    /// The round trip of the simulated network between the app and the gateway, for signalling and media; 0: loopback's own.
    var roundTripMilliseconds = 0
    /// Seconds before the measurement.
    var settles = 2.0
    /// Keeps the call stacks of the media thread's allocations.
    var traces = false
  }

  struct Report: Codable {
    var marks: [String: Int64]
    var loudSamples: Int
    /// With the first call, when it was measured, and with all calls connected.
    var residentKilobytes: [Int]
    var figures: ThreadFigures?
    var sites: [AllocationSites.Site]
    var sentPackets: UInt64
    var violations: [String]
    var trace: [String]
  }

  nonisolated static let option = "--app"
  private let plan: Plan
  private let marks = Marks()
  private let audio: TimedAudio
  private let iphone = StandInPhone(.strict, clock: .real)
  private var phone: Phone?
  private var report: Report
  private var answered: Set<UUID> = []
  private var before: (figures: ThreadFigures, packets: UInt64)?

  init(_ plan: Plan) {
    self.plan = plan
    audio = TimedAudio(Speech.samples().flatMap { [$0, $0] }, marks)
    report = Report(
      marks: [:], loudSamples: 0, residentKilobytes: [], figures: nil, sites: [], sentPackets: 0, violations: [], trace: [])
    marks.note("main")
  }

  /// The function that runs the plan; nil if the arguments are not those of such a child.
  nonisolated static func role(_ arguments: [String]) -> (() -> Never)? {
    guard arguments.count == 3, arguments[1] == option,
      let plan = try? JSONDecoder().decode(Plan.self, from: Data(arguments[2].utf8))
    else { return nil }
    return {
      MainActor.assumeIsolated { () -> Never in
        let app = AppProcess(plan)
        app.start()
        while true { _ = RunLoop.main.run(mode: .default, before: .distantFuture) }
      }
    }
  }

  // MARK: the app's start

  private struct NoToken: Error {}

  private func start() {
    let (plan, marks, audio, iphone) = (plan, marks, audio, iphone)
    let tap: @Sendable () -> Void = {
      marks.note("tap")
      iphone.tap(.answer)
    }
    let noted: @Sendable (String) -> Void = { name in
      switch (name, plan.tap) {
      case ("reported", .early): DispatchQueue.global().async(execute: tap)
      case ("media.ready", .warm): DispatchQueue.global().asyncAfter(deadline: .now() + 0.3, execute: tap)
      default: break
      }
    }
    let make: @MainActor @Sendable () -> Phone = {
      var settings = CallKitSystem.Settings()
      settings.topic = "org.example.phone.voip"
      let sockets: any SocketConnector =
        plan.roundTripMilliseconds == 0 ? WebSockets() : FarSockets(roundTripMilliseconds: plan.roundTripMilliseconds)
      let system: any CallSystem = plan.calls == nil ? CallKitSystem(settings) : NoCallSystem()
      return Phone(
        plan.gateway, device: plan.device, system: TimedSystem(system, marks, noted: noted), audio: audio,
        sockets: TimedSockets(sockets, marks, noted: noted), isBackground: plan.push != nil, maximumCalls: plan.calls ?? 2
      ) {
        guard let token = plan.token else { throw NoToken() }
        return token
      }
    }
    let box = PhoneBox()
    iphone.lock()
    iphone.install { () -> Any in
      // the system starts a process on a separate thread
      if pthread_equal(pthread_self(), box.main) != 0 { return MainActor.assumeIsolated { box.keep(make()) } }
      return DispatchQueue.main.sync { MainActor.assumeIsolated { box.keep(make()) } }
    }
    if let push = plan.push { iphone.push(push) } else { iphone.launch { MainActor.assumeIsolated { box.keep(make()) } } }
    follow(box)
  }

  /// Weak, as the stand-in's process owns the phone.
  private final class PhoneBox: @unchecked Sendable {
    // Unchecked: touched on the main thread only.
    let main = pthread_self()
    weak var phone: Phone?
    func keep(_ made: Phone) -> Phone {
      phone = made
      return made
    }
  }

  private func follow(_ box: PhoneBox) {
    guard let made = box.phone else {
      return DispatchQueue.main.asyncAfter(deadline: .now() + 0.001) { MainActor.assumeIsolated { self.follow(box) } }
    }
    phone = made
    let (states, events) = (made.states, made.events)
    Task {
      for await state in states {
        guard state == .online else { continue }
        marks.note("online")
        if plan.push == nil, plan.calls == nil { idle() }
      }
    }
    Task {
      for await event in events {
        guard case .closed = event else { continue }
        if plan.calls == nil { finish() }
      }
    }
    watch()
  }

  // MARK: calls

  private func watch() {
    guard let phone else { return }
    withObservationTracking {
      for call in phone.calls { _ = call.state }
    } onChange: {
      Task { @MainActor in self.watch() }
    }
    for call in phone.calls { look(at: call) }
  }

  private func look(at call: Call) {
    if plan.calls != nil, case .ringing = call.state, call.account != nil, answered.insert(call.id).inserted { call.answer() }
    guard isConnected(call), !answered.contains(call.id) || plan.calls != nil else { return }
    if let most = plan.calls { return connected(of: most) }
    answered.insert(call.id)
    if let time = plan.measures { later(plan.settles) { self.measure(call, time) } }
  }

  private func isConnected(_ call: Call) -> Bool {
    switch call.state {
    case .connected, .held, .reconnecting: true
    case .ringing, .connecting, .calling, .ended: false
    }
  }

  /// Memory in KB with one call, and with all calls connected.
  private func connected(of most: Int) {
    let count = phone?.calls.count { isConnected($0) } ?? 0
    if count >= 1, report.residentKilobytes.isEmpty {
      report.residentKilobytes = [0]
      later(plan.settles) {
        self.report.residentKilobytes = [ThreadFigures.residentKilobytes()]
        print("settled")
        fflush(nil)
        self.watch()
      }
    }
    guard count >= most, report.residentKilobytes.count == 1, report.residentKilobytes != [0] else { return }
    report.residentKilobytes.append(0)
    later(plan.settles) {
      self.report.residentKilobytes[1] = ThreadFigures.residentKilobytes()
      self.finish()
    }
  }

  private func measure(_ call: Call, _ seconds: Double) {
    report.residentKilobytes = [ThreadFigures.residentKilobytes()]
    if plan.traces, let thread = ThreadFigures.thread(named: "trunkline-media") { AllocationSites.trace(thread: thread) }
    before = (ThreadFigures.now(), call.statistics.sentPackets)
    later(seconds) {
      guard let before = self.before else { return }
      self.report.figures = ThreadFigures.now().since(before.figures)
      self.report.sentPackets = call.statistics.sentPackets - before.packets
      if self.plan.traces { self.report.sites = AllocationSites.finish() }
      call.end()
    }
  }

  private func idle() {
    guard let seconds = plan.measures, before == nil else { return }
    later(plan.settles) {
      self.report.residentKilobytes = [ThreadFigures.residentKilobytes()]
      self.before = (ThreadFigures.now(), 0)
      self.later(seconds) {
        self.report.figures = self.before.map { ThreadFigures.now().since($0.figures) }
        self.finish()
      }
    }
  }

  private func later(_ seconds: Double, _ body: @escaping @MainActor () -> Void) {
    DispatchQueue.main.asyncAfter(deadline: .now() + seconds) { MainActor.assumeIsolated(body) }
  }

  private func finish() {
    (report.marks, report.loudSamples) = (marks.all, audio.loudSamples)
    (report.violations, report.trace) = (iphone.violations, phone?.trace ?? [])
    FileHandle.standardOutput.write(((try? JSONEncoder().encode(report)) ?? Data()) + Data([10]))
    exit(0)
  }
}
