public import AppProtocol
import Bytes
public import ClientMachines
public import Foundation
public import Observation
import Synchronization

/// The telephone of an app: made once, at launch, and kept for the process's life. Nothing on it blocks.
///
/// ```swift
/// let phone = Phone(
///   "wss://phone.example.com/v1/connect", system: .none, audio: NoAudio(), sockets: sockets
/// ) { try await Backend.phoneToken() }
/// let call = phone.call("+15551230001")
/// for await state in call.states { print(state) }  // connecting, calling, 0:00, 0:01 … ended
/// ```
///
/// Its properties are the main actor's; the work is done on a queue and a media thread of its own, so a main thread that hangs costs no call.
@MainActor @Observable
public final class Phone {
  /// Where the phone stands with its gateway. ``description`` is a word for a screen, in English.
  public enum State: Hashable, Sendable, CustomStringConvertible {
    /// Nothing to do: no login yet, or in the background without a call. A push wakes it.
    case idle
    /// On the way to the gateway; attempts follow each other by themselves, 0.2 to 5 s apart.
    case connecting
    /// Calls can be made, and ring at once.
    case online
    /// After ``Phone/logOut()``: this phone does nothing more.
    case loggedOut
    /// What the app should do is the error's text.
    case failed(PhoneError)

    /// "online", "connecting", or what the app should do about an error.
    public var description: String {
      switch self {
      case .idle: "offline"
      case .connecting: "connecting"
      case .online: "online"
      case .loggedOut: "logged out"
      case .failed(let error): "\(error)"
      }
    }
  }

  /// What happens once, and is no state: for logs, measurements and the app's own screens.
  public enum Event: Sendable {
    /// Media of a call has a pair of candidates and its keys.
    case media(Call, pair: MediaReady.Pair?, roundTripMilliseconds: Double?, profile: String)
    /// The other side pressed a key: 0 to 9, A to D, * or #.
    case digit(Call, Character)
    /// How far a transfer is.
    case transferred(Call, CallTransferred)
    /// The app's own call screen should show: the device is unlocked and the call is connected (UI-1).
    case presentInApp(Call)
    /// An ended call's media is closed; its statistics are final.
    case closed(Call)
    /// A connection attempt failed, and why.
    case disconnected(String)
    /// The gateway took the push token, or why not.
    case registered(ErrorCode?)
    /// The history has another newest call, or (0) is empty now: see ``Phone/history(before:limit:)``.
    case historyChanged(Int)
    /// The chosen audio route is gone, and another is used: say so. The choice stays, and is used again when it is back.
    case audioRouteFellBack(from: AudioRoute, to: AudioRoute?)
    /// The chosen audio route is back, and is used again.
    case audioRouteReturned(AudioRoute)
  }

  /// Live calls, the oldest first; ended ones go after a few seconds.
  public private(set) var calls: [Call] = []
  /// Where the phone stands with its gateway.
  public private(set) var state = State.idle
  /// Where audio may go, for a menu; empty where the phone was given no ``AudioRoutes``.
  public private(set) var audioRoutes: [AudioRoute] = []
  /// Where it goes, or would.
  public private(set) var audioRoute: AudioRoute?
  /// What ``useAudioRoute(_:)`` or the user in the system's own picker has chosen; nil: the system decides.
  public private(set) var chosenAudioRoute: AudioRoute?
  /// The chosen route is not there now: another is used until it is back.
  public private(set) var isAudioRouteFallback = false
  /// Calls do not ring here.
  public var doNotDisturb = false { didSet { give(.preferences(.init(dnd: doNotDisturb))) } }

  @ObservationIgnored let engine: PhoneEngine?
  @ObservationIgnored private let updates: PhoneUpdates
  @ObservationIgnored private var error: PhoneError?
  @ObservationIgnored private var machineState = PhoneState.idle
  @ObservationIgnored private var stateReaders: [UUID: AsyncStream<State>.Continuation] = [:]
  @ObservationIgnored private var eventReaders: [UUID: AsyncStream<Event>.Continuation] = [:]
  @ObservationIgnored private var logOutWaiters: [CheckedContinuation<Void, Never>] = []
  /// Ended calls stay in `calls` so long, so that their reason can be read.
  private static let endedTime = Duration.seconds(3)
  nonisolated private static let isMade = Mutex(false)

  /// - Parameters:
  ///   - gateway: `wss://host/v1/connect`.
  ///   - device: the id that the gateway knows this installation by, the token's `dev`; nil: read from the token.
  ///   - system: what shows calls.
  ///   - audio: microphone and loudspeaker.
  ///   - sockets: what opens WebSockets; nil: the system's own.
  ///   - secrets: what is kept over restarts.
  ///   - paths: the source of network changes; nil: none, and a broken path is found by its silence.
  ///   - routes: where audio may go; nil: the system decides, and nothing is said of it.
  ///   - isBackground: a push has started the process.
  ///   - forcesUnlock: without a microphone permission a call is reported as video, so that iOS unlocks and the app can ask.
  ///   - maximumCalls: a further one is busy on this device.
  ///   - sealsCallers: pushes hold the caller sealed for a key in `secrets`: no push service sees who calls. Before the first unlock, when
  ///     the key cannot be read, the call screen says Unknown until the gateway is reached.
  ///   - token: a login token of the app's backend. Called at launch, before the old one expires and after it is refused, at most
  ///     once in 10 s. It should fetch a new one: one that ends no later than the one in use counts as none (``PhoneError/staleToken``).
  public init(
    _ gateway: String, device: String? = nil, system: any CallSystem, audio: any AudioDevice, sockets: any SocketConnector,
    secrets: any SecretStore = MemorySecrets(), paths: (any PathMonitor)? = nil, routes: (any AudioRoutes)? = nil,
    isBackground: Bool = false, forcesUnlock: Bool = false, maximumCalls: Int = 2, sealsCallers: Bool = false,
    token: @escaping @Sendable () async throws -> String
  ) {
    let box = WakeBox()
    updates = PhoneUpdates { box.wake() }
    let isFirst = Self.isMade.withLock { isMade in
      defer { isMade = true }
      return !isMade
    }
    guard isFirst else {
      engine = nil
      state = .failed(.secondPhone)
      return
    }
    let known = device ?? secrets.read(SecretKey.deviceID).map { String(decoding: $0, as: UTF8.self) } ?? ""
    var configuration = PhoneMachine.Configuration(
      device: Hello.Device(id: known, platform: Self.platform, sdk: "trunkline-swift"))
    (configuration.isForeground, configuration.forcesUnlock) = (!isBackground, forcesUnlock)
    configuration.maximumCalls = maximumCalls
    var parts = PhoneParts(
      gateway: gateway, configuration: configuration, system: system, audio: audio, sockets: sockets, secrets: secrets,
      paths: paths,
      token: token)
    (parts.sealsCallers, parts.routes) = (sealsCallers, routes)
    let engine = PhoneEngine(parts, updates: updates)
    self.engine = engine
    box.set { [weak self] in Task { @MainActor in self?.drainUpdates() } }
    engine.start()
  }

  deinit {
    guard let engine else { return }
    engine.stop()
    Self.isMade.withLock { $0 = false }
  }

  private static var platform: String {
    #if os(Linux)
      "linux"
    #elseif os(macOS)
      "macos"
    #else
      "ios"
    #endif
  }

  /// A closure that is set once the phone is whole.
  private final class WakeBox: Sendable {
    private let body = Mutex<(@Sendable () -> Void)?>(nil)
    func set(_ body: @escaping @Sendable () -> Void) { self.body.withLock { $0 = body } }
    func wake() { body.withLock { $0 }?() }
  }

  // MARK: what the app asks for

  /// Calls a number. The call's ``Call/state`` says how it goes; one that cannot be made is `.ended` and has an ``Call/error``.
  ///
  /// - Parameters:
  ///   - number: as the user writes it; the gateway reads it as dialled in the user's country. White space is left out.
  ///   - from: which of the user's numbers the callee sees; nil: the first.
  ///   - account: which of the user's accounts it belongs to; nil: the gateway's default.
  ///   - location: where the caller is, a PIDF-LO document (RFC 4119) of at most 8,192 bytes. Only an emergency call carries it, to a
  ///     trunk whose operator has asked for it.
  ///   - parameters: what the other side is told beside, by name: header fields that the trunk's `parameters` lists, or what the called user's app
  ///     finds in ``Call/parameters``. At most 16 of 1,024 bytes together.
  @discardableResult
  public func call(
    _ number: String, from: String? = nil, account: String? = nil, location: String? = nil, parameters: [String: String] = [:]
  ) -> Call {
    call(Handle(k: .phone, h: number), from: from, account: account, location: location, parameters: parameters)
  }

  /// Calls the party that the handle names: a number, an address, or what the gateway has a route for.
  ///
  /// - Parameters:
  ///   - handle: the party to call.
  ///   - from: which of the user's numbers the callee sees; nil: the first.
  ///   - account: which of the user's accounts it belongs to; nil: the gateway's default.
  ///   - location: where the caller is, a PIDF-LO document, as of a number.
  ///   - parameters: what the other side is told beside, as of a number.
  @discardableResult
  public func call(
    _ handle: Handle, from: String? = nil, account: String? = nil, location: String? = nil, parameters: [String: String] = [:]
  ) -> Call {
    let id = Identifier(random: .client)
    var callee = handle
    callee.h = String(handle.h.filter { !$0.isWhitespace }.prefix(256))
    let call = Call(id, .outgoing, callee, self)
    if callee.h.isEmpty {
      call.error = .emptyNumber
      call.update(CallInfo(id: id, isOutgoing: true, peer: callee, state: .ended, reason: .notFound))
      return call
    }
    if let fault = CallParameters.fault(of: parameters) {
      call.error = .badParameters(fault)
      call.update(CallInfo(id: id, isOutgoing: true, peer: callee, state: .ended, reason: .unknown))
      return call
    }
    guard engine != nil else {
      call.error = .secondPhone
      call.update(CallInfo(id: id, isOutgoing: true, peer: callee, state: .ended, reason: .unknown))
      return call
    }
    calls.append(call)
    let options = CallOptions(
      from: from.map { Handle(k: .phone, h: $0) }, account: account, location: location,
      parameters: parameters.isEmpty ? nil : CallParameters(parameters))
    give(.dial(id, to: callee, options))
    return call
  }

  /// The device leaves the gateway's list, then this returns; without a network it is done when the gateway is next reached.
  public func logOut() async {
    guard engine != nil, state != .loggedOut else { return }
    give(.logOut)
    await withCheckedContinuation { logOutWaiters.append($0) }
  }

  /// What the user has granted; without it calls are not shown, or reported as video so that the device unlocks (`forcesUnlock`).
  public func microphone(_ permission: MicrophonePermission) { give(.microphone(permission)) }
  /// The app comes to the front, or leaves it.
  public func foreground(_ isOn: Bool) { give(.foreground(isOn)) }

  /// The last 500 events, for a bug report and for `trunkline-lab check-trace`: a header, then a line each. Numbers are masked, names,
  /// digits and tokens are not in it. Its format: docs/design/apple-stand-in.md.
  public var trace: [String] { engine?.trace.text ?? [] }

  /// From now on the trace is appended to a file as well, which the process's end does not take along: at most 8 MiB. For a device that is
  /// tested (docs/apps/on-device.md), right after the phone is made. Before the first unlock lines wait in memory.
  public func keepTrace(at file: URL) {
    let path = file.path
    engine?.enqueue { $0.keepTrace(at: path) }
  }

  /// The system wants a call: Recents, Contacts or Siri.
  package func noteStartCall(_ kind: Handle.Kind) {
    engine?.enqueue { $0.trace.startCall(kind, MonotonicTime.now()) }
  }

  /// Each state from now on; a slow reader misses steps, never the last.
  public var states: AsyncStream<State> {
    let (stream, continuation) = AsyncStream.makeStream(of: State.self, bufferingPolicy: .bufferingNewest(1))
    let reader = UUID()
    continuation.yield(state)
    stateReaders[reader] = continuation
    continuation.onTermination = { [weak self] _ in Task { @MainActor in self?.stateReaders[reader] = nil } }
    return stream
  }

  /// What happens once, from now on; of a reader that is slow the oldest 256 are kept.
  public var events: AsyncStream<Event> {
    let (stream, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingOldest(256))
    let reader = UUID()
    eventReaders[reader] = continuation
    continuation.onTermination = { [weak self] _ in Task { @MainActor in self?.eventReaders[reader] = nil } }
    return stream
  }

  func act(_ call: Call, _ action: PhoneMachine.CallAction) { give(.act(call.identifier, action)) }
  private func give(_ input: PhoneMachine.Input) { engine?.enqueue { $0.give(input) } }

  // MARK: what the engine tells

  private func drainUpdates() {
    let batch = updates.drain()
    if let state = batch.state { machineState = state }
    if let news = batch.error { error = news }
    if batch.state != nil || batch.error != nil { moveState() }
    for id in batch.order { if let info = batch.calls[id] { update(info) } }
    for (id, statistics) in batch.statistics { call(id)?.update(statistics) }
    if let routes = batch.routes { update(routes) }
    for event in batch.events { update(event) }
  }

  private func update(_ routes: AudioRouteChoice) {
    if audioRoutes != routes.list.available { audioRoutes = routes.list.available }
    if audioRoute != routes.list.current { audioRoute = routes.list.current }
    if chosenAudioRoute != routes.chosen { chosenAudioRoute = routes.chosen }
    if isAudioRouteFallback != routes.isFallback { isAudioRouteFallback = routes.isFallback }
  }

  private func call(_ id: Identifier) -> Call? { calls.first { $0.identifier == id } }

  private func update(_ info: CallInfo) {
    let known = call(info.id)
    // the end of one that was never shown here
    guard known != nil || info.state != .ended else { return }
    let call = known ?? Call(info.id, info.isOutgoing ? .outgoing : .incoming, info.peer, self)
    if known == nil { calls.append(call) }
    call.update(info)
    guard info.state == .ended else { return }
    Task { [weak self] in
      try? await Task.sleep(for: Self.endedTime)
      self?.calls.removeAll { $0 === call }
    }
  }

  private func moveState() {
    let next: State =
      switch machineState {
      case .idle: error.map { .failed($0) } ?? .idle
      case .connecting: .connecting
      case .online: .online
      case .refused: error.map { .failed($0) } ?? .failed(.loginRefused)
      case .loggedOut: .loggedOut
      }
    guard next != state else { return }
    state = next
    for reader in stateReaders.values { reader.yield(next) }
  }

  private func update(_ event: PhoneUpdates.Event) {
    switch event {
    case .digit(let id, let digit): if let call = call(id) { yield(.digit(call, digit)) }
    case .transferred(let id, let status): if let call = call(id) { yield(.transferred(call, status)) }
    case .presentInApp(let id): if let call = call(id) { yield(.presentInApp(call)) }
    case .closed(let id): if let call = call(id) { yield(.closed(call)) }
    case .media(let id, let pair, let trip, let profile):
      if let call = call(id) { yield(.media(call, pair: pair, roundTripMilliseconds: trip, profile: profile)) }
    case .disconnected(let why): yield(.disconnected(why))
    case .registered(let refusal): yield(.registered(refusal))
    case .historyChanged(let id): yield(.historyChanged(id))
    case .routeFellBack(let from, let to): yield(.audioRouteFellBack(from: from, to: to))
    case .routeReturned(let route): yield(.audioRouteReturned(route))
    case .loggedOut:
      for waiter in logOutWaiters { waiter.resume() }
      logOutWaiters = []
    }
  }

  private func yield(_ event: Event) { for reader in eventReaders.values { reader.yield(event) } }
}
