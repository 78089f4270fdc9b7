import Foundation
import Observation
public import TrunklineAppProtocol
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineClient
import TrunklinePlatform
public import TrunklineRTP

/// The SDK as a command: logs in to a gateway, answers or places calls, speaks, records received audio. One call at a time; a
/// second one is busy.
@MainActor
public final class LabPhone {
  public struct Options: Sendable {
    public var url = "ws://127.0.0.1:8080/v1/connect"
    /// Empty: only `push` admits it.
    public var token = ""
    /// The push that started it.
    public var push: [UInt8]?
    /// Registers this push token, then leaves.
    public var registration: DevicePut.Push?
    public var device = "phone"
    /// Answers incoming calls this long after they ring; nil: never.
    public var answerAfter: Duration?
    public var call: String?
    public var from: String?
    /// Hangs up this long after the call is connected; nil waits for the peer.
    public var talk: Duration?
    public var digits = ""
    /// Band of `samples` and of received audio; the upper half of a wide call is lost at 8 kHz.
    public var band = AudioBand.narrowband
    public var samples: [Int16]?
    public var repeats = false
    /// Ends after this many calls.
    public var calls: Int?
    /// Accepts self-signed certificates.
    public var isInsecure = false
    /// Reports the user's directory and the newest call of the history.
    public var followsDirectory = false
    /// Runs a preflight test, reports it and leaves.
    public var preflights = false
    /// Receives the SDK's log.
    public var log: (@Sendable (String) -> Void)?
    public init() {}
  }

  public struct CallReport: Sendable {
    public var wasConnected = false
    public var heard: [Int16] = []
    public init() {}
  }

  private struct NotLoggedIn: Error, CustomStringConvertible { let description = "no token: a push lets this phone in" }

  private let options: Options
  private let emit: @Sendable (PeerEvent) -> Void
  private let audio: FileAudio
  private let system = NoCallSystem()
  private var phone: Phone?
  private var tasks: [Task<Void, Never>] = []
  /// The known state of each live call.
  private var shown: [UUID: (isRinging: Bool, wasConnected: Bool, codec: String)] = [:]
  private var isStopping = false
  private var isLeaving = false
  private var wasOnline = false
  public private(set) var reports: [CallReport] = []
  /// Why the gateway refused this device.
  public private(set) var refusal: String?
  public private(set) var isOver = false

  public init(_ options: Options, emit: @escaping @Sendable (PeerEvent) -> Void) {
    (self.options, self.emit) = (options, emit)
    audio = FileAudio(
      options.samples ?? Recording(PeerSpeech.app).samples(options.band),
      sampleRateHz: options.band.sampleRateHz,
      repeats: options.repeats
    ) { emit(PeerEvent("firstAudio", at: $0)) }
  }

  public func start() {
    let token = options.token
    let made = Phone(
      options.url, device: options.device, system: system, audio: audio, sockets: WebSockets(isInsecure: options.isInsecure),
      paths: AddressMonitor(), maximumCalls: 1
    ) {
      if token.isEmpty { throw NotLoggedIn() }
      return token
    }
    phone = made
    let (states, events) = (made.states, made.events)
    tasks.append(Task { [weak self] in for await state in states { self?.update(state) } })
    tasks.append(Task { [weak self] in for await event in events { self?.update(event) } })
    if let push = options.push { system.pushed(push) }
    if options.followsDirectory { followDirectory(made) }
    if let log = options.log { made.log(.debug) { log($0.description) } }
    watch()
  }

  /// Hangs up, then leaves.
  public func stop() {
    guard !isStopping else { return }
    isStopping = true
    let live = phone?.calls.filter { $0.endReason == nil } ?? []
    if live.isEmpty { return leave() }
    for call in live { call.end() }
  }

  /// The process ends once `isOver`; the gateway has to know the end of the last call before.
  private func leave() {
    guard !isLeaving else { return }
    isLeaving = true
    for task in tasks { task.cancel() }
    tasks = []
    Task { @MainActor [phone] in
      await phone?.finish(within: .seconds(2))
      phone?.flushLog()
      self.phone = nil
      isOver = true
    }
  }

  private func update(_ state: Phone.State) {
    switch state {
    case .online:
      guard !wasOnline else { return }
      wasOnline = true
      emit(PeerEvent("online"))
      if options.preflights { return preflight() }
      if let registration = options.registration { return system.pushToken(registration) }
      if let number = options.call, reports.isEmpty, shown.isEmpty {
        emit(PeerEvent("dial", ["to": number]))
        let isNumber = !number.contains(where: \.isLetter)
        phone?.call(Handle(k: isNumber ? .phone : .generic, h: number), from: options.from)
      }
    case .connecting where wasOnline:
      wasOnline = false
      emit(PeerEvent("offline"))
    case .failed(let error):
      if options.push != nil, case .noToken = error { return }
      refusal = "\(error)"
      leave()
    case .idle, .connecting, .loggedOut: break
    }
  }

  private func update(_ event: Phone.Event) {
    switch event {
    case .media(_, let pair, let trip, let profile):
      let kinds = "\(pair?.local ?? "?")→\(pair?.remote ?? "?")"
      emit(PeerEvent("media", ["pair": kinds, "rttMs": trip.map { "\(Int($0))" } ?? "", "profile": profile]))
    case .digit(_, let digit): emit(PeerEvent("digit", ["digit": String(digit)]))
    case .disconnected(let why): emit(PeerEvent("disconnected", ["why": why]))
    case .registered(let refused):
      if let refused {
        refusal = "device.put was refused: \(refused.rawValue)"
      } else {
        emit(PeerEvent("registered", ["device": options.device]))
      }
      leave()
    case .closed(let call): ended(call)
    case .historyChanged: reportHistory()
    case .transferred, .presentInApp, .audioRouteFellBack, .audioRouteReturned: break
    }
  }

  private func preflight() {
    guard let phone else { return }
    tasks.append(
      Task { [weak self] in
        let result = await phone.preflight()
        guard let self, !Task.isCancelled else { return }
        let trip = result.network.roundTripMilliseconds.map { "\($0)" } ?? ""
        emit(PeerEvent("preflight", ["ready": "\(result.isReady)", "rttMs": trip]))
        for server in result.servers {
          emit(
            PeerEvent(
              "server",
              [
                "url": server.url, "good": "\(server.isGood)", "ms": server.milliseconds.map { "\(Int($0))" } ?? "",
                "failure": server.failure ?? "",
              ]))
        }
        if let call = result.call {
          func text(_ value: Double?) -> String { value.map { "\(($0 * 100).rounded() / 100)" } ?? "" }
          emit(
            PeerEvent(
              "testCall",
              [
                "good": call.isGood.map { "\($0)" } ?? "", "mos": text(call.score), "rttMs": text(call.roundTripMilliseconds),
                "sentMOS": text(call.sent?.score), "sentLoss": text(call.sent?.lossFraction),
                "sentHeard": "\(call.sent?.isHeard ?? false)", "receivedMOS": text(call.received?.score),
                "receivedLoss": text(call.received?.lossFraction), "receivedHeard": "\(call.received?.isHeard ?? false)",
                "error": call.error.map { "\($0)" } ?? "",
              ]))
        }
        if !result.isReady { refusal = "the preflight test failed" }
        leave()
      })
  }

  // MARK: directory and history

  private func followDirectory(_ phone: Phone) {
    phone.followDirectory { [emit] parts in
      let names = parts.flatMap { $0.identify ?? [] }.map { "\($0.n) \($0.l)" }
      emit(
        PeerEvent(
          "directory",
          [
            "version": "\(parts.first?.version ?? 0)", "from": parts.first?.from.map { "\($0)" } ?? "",
            "names": names.prefix(8).joined(separator: ", "), "count": "\(names.count)",
            "blocked": parts.flatMap { $0.block ?? [] }.prefix(8).map { "\($0)" }.joined(separator: ", "),
          ]))
    }
  }

  private func reportHistory() {
    guard options.followsDirectory, let phone else { return }
    tasks.append(
      Task { [emit] in
        guard let page = try? await phone.history(limit: 1), let call = page.calls.first else {
          return emit(PeerEvent("history", ["outcome": "none"]))
        }
        emit(
          PeerEvent(
            "history",
            [
              "outcome": call.outcome.rawValue, "dir": call.dir.rawValue, "peer": call.peer.h, "name": call.peer.n ?? "",
              "call": "\(call.call)", "reason": call.reason.rawValue,
            ]))
      })
  }

  // MARK: calls

  /// Observes the list of calls and the reported state of each, at every change.
  private func watch() {
    guard let phone else { return }
    withObservationTracking {
      for call in phone.calls { _ = (call.state, call.account, call.quality) }
    } onChange: { [weak self] in
      Task { @MainActor in self?.watch() }
    }
    for call in phone.calls { look(at: call) }
  }

  private func look(at call: Call) {
    if shown[call.id] == nil, call.endReason == nil { shown[call.id] = (false, false, "") }
    guard var known = shown[call.id] else { return }
    defer { if shown[call.id] != nil { shown[call.id] = known } }
    // a push alone does not ring: the gateway has confirmed the call
    if call.direction == .incoming, !known.isRinging, call.account != nil, call.endReason == nil {
      known.isRinging = true
      emit(PeerEvent("ringing", ["from": call.peer.handle.h, "call": "\(call.id)".lowercased()]))
      if let wait = options.answerAfter { after(wait, call) { $0.answer() } }
    }
    if case .connected = call.state, !known.wasConnected {
      known.wasConnected = true
      known.codec = call.codec ?? ""
      emit(PeerEvent("connected", ["codec": known.codec]))
      if !options.digits.isEmpty { call.send(digits: options.digits) }
      if let talk = options.talk { after(talk, call) { $0.end() } }
    }
  }

  private func after(_ time: Duration, _ call: Call, _ body: @escaping @MainActor (Call) -> Void) {
    if time <= .zero { return body(call) }
    tasks.append(
      Task { [weak call] in
        guard (try? await Task.sleep(for: time)) != nil, let call else { return }
        body(call)
      })
  }

  private func ended(_ call: Call) {
    guard let known = shown.removeValue(forKey: call.id) else { return }
    let heard = audio.drainReceived()
    let reason = call.endReason?.rawValue ?? ""
    if reports.count < 1_000 {
      var report = CallReport()
      report.wasConnected = known.wasConnected
      report.heard = heard.samples
      reports.append(report)
    }
    if options.push != nil, !known.isRinging {
      emit(PeerEvent("gone", ["call": "\(call.id)".lowercased(), "reason": reason]))
    } else {
      let statistics = call.statistics
      emit(
        PeerEvent(
          "ended",
          [
            "reason": reason, "connected": "\(known.wasConnected)", "sent": "\(statistics.sentPackets)",
            "received": "\(statistics.receivedPackets)", "lost": "\(statistics.lostPackets)",
            "concealedMs": "\(statistics.concealedMilliseconds)", "refused": "\(statistics.refusedPackets)",
            "digits": statistics.digits, "jitterMs": PeerEvent.number(statistics.jitterMilliseconds),
            "bufferMs": PeerEvent.number(statistics.bufferDelayMilliseconds),
            "spokenAt": PeerEvent.wall(heard.spokenSince), "heardAt": PeerEvent.wall(heard.since),
          ]))
    }
    let limit = options.calls ?? (options.call != nil ? 1 : nil)
    if isStopping || limit.map({ reports.count >= $0 }) ?? false { leave() }
  }
}
