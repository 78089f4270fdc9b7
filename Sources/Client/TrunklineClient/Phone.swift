public import Foundation
public import Observation
import Synchronization
public import TrunklineAppProtocol
import TrunklineBytes
public import TrunklineClientMachines

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
/// Its properties belong to the main actor; the work is done on its own queue and media thread, so a main thread that hangs ends
/// no call.
@MainActor @Observable
public final class Phone {
  /// The phone's connection to its gateway. ``description`` is a word for a screen, in English.
  public enum State: Hashable, Sendable, CustomStringConvertible {
    /// No work: no login yet, or in the background without a call. A push wakes it.
    case idle
    /// Connecting to the gateway; attempts repeat automatically, 0.2 to 5 s apart.
    case connecting
    /// Calls can be made, and ring at once.
    case online
    /// After ``Phone/logOut()``: this phone stays inactive.
    case loggedOut
    /// The error's text states what the app should do.
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

  /// Events that are not states: for logs, measurements and the app's own screens.
  public enum Event: Sendable {
    /// A call's media has a pair of candidates and its keys.
    case media(Call, pair: MediaReady.Pair?, roundTripMilliseconds: Double?, profile: String)
    /// The peer pressed a key: 0 to 9, A to D, * or #.
    case digit(Call, Character)
    /// The progress of a transfer.
    case transferred(Call, CallTransferred)
    /// The app's own call screen should show: the device is unlocked and the call is connected.
    case presentInApp(Call)
    /// An ended call's media is closed; its statistics are final.
    case closed(Call)
    /// A connection attempt failed, with the reason.
    case disconnected(String)
    /// The gateway accepted the push token (nil), or refused it with this code.
    case registered(ErrorCode?)
    /// The history has another newest call, or (0) is empty now: see ``Phone/history(before:limit:)``.
    case historyChanged(Int)
    /// The chosen audio route is unavailable, and another is used: show it to the user. The choice is kept, and is used again
    /// when it is available.
    case audioRouteFellBack(from: AudioRoute, to: AudioRoute?)
    /// The chosen audio route is available, and is used again.
    case audioRouteReturned(AudioRoute)
  }

  /// Live calls, the oldest first; ended ones are removed after a few seconds.
  public private(set) var calls: [Call] = []
  /// The phone's connection to its gateway.
  public private(set) var state = State.idle
  /// Available audio routes, for a menu; empty if the phone has no ``AudioRoutes``.
  public private(set) var audioRoutes: [AudioRoute] = []
  /// The route that audio uses, or would use.
  public private(set) var audioRoute: AudioRoute?
  /// The route chosen by ``useAudioRoute(_:)`` or by the user in the system's own picker; nil: the system decides.
  public private(set) var chosenAudioRoute: AudioRoute?
  /// The chosen route is unavailable: another is used until it returns.
  public private(set) var isAudioRouteFallback = false
  /// True: calls do not ring here.
  public var doNotDisturb = false { didSet { give(.preferences(.init(dnd: doNotDisturb))) } }

  @ObservationIgnored let engine: PhoneEngine?
  @ObservationIgnored private let updates: PhoneUpdates
  @ObservationIgnored private var error: PhoneError?
  @ObservationIgnored private var machineState = PhoneState.idle
  @ObservationIgnored private var stateReaders: [UUID: AsyncStream<State>.Continuation] = [:]
  @ObservationIgnored private var eventReaders: [UUID: AsyncStream<Event>.Continuation] = [:]
  @ObservationIgnored private var logOutWaiters: [CheckedContinuation<Void, Never>] = []
  /// How long ended calls stay in `calls`, so that their reason can be read.
  private static let endedTime = Duration.seconds(3)
  nonisolated private static let isMade = Mutex(false)

  /// - Parameters:
  ///   - gateway: `wss://host/v1/connect`.
  ///   - device: the id of this installation at the gateway, the token's `dev`; nil: read from the token.
  ///   - system: shows calls.
  ///   - audio: microphone and loudspeaker.
  ///   - sockets: opens WebSockets; nil: the system's own.
  ///   - secrets: values that survive restarts.
  ///   - paths: reports changes of the network; nil: a broken path is detected by its silence.
  ///   - routes: the audio routes; nil: the system decides, and no route is reported.
  ///   - isBackground: a push has started the process.
  ///   - forcesUnlock: without a microphone permission a call is reported as video, so that iOS unlocks and the app can request
  ///     it.
  ///   - maximumCalls: a further one is busy on this device.
  ///   - sealsCallers: pushes contain the caller sealed for a key in `secrets`: no push service can read it. Before the first
  ///     unlock, when the key cannot be read, the call screen shows Unknown until the gateway is reached.
  ///   - token: returns a login token from the app's backend. Called at launch, before the old one expires and after it is
  ///     refused, at most once in 10 s. It should fetch a new one: one that does not expire later than the one in use is rejected
  ///     (``PhoneError/staleToken``).
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

  /// A closure that is set once the phone is complete.
  private final class WakeBox: Sendable {
    private let body = Mutex<(@Sendable () -> Void)?>(nil)
    func set(_ body: @escaping @Sendable () -> Void) { self.body.withLock { $0 = body } }
    func wake() { body.withLock { $0 }?() }
  }

  // MARK: requests of the app

  /// Calls a number. The call's ``Call/state`` reports its progress; one that cannot be made is `.ended` and has an
  /// ``Call/error``.
  ///
  /// - Parameters:
  ///   - number: as the user writes it; the gateway reads it as dialled in the user's country. White space is removed.
  ///   - from: the user's number that the callee sees; nil: the first.
  ///   - account: the user's account that the call belongs to; nil: the gateway's default.
  ///   - location: the caller's location, a PIDF-LO document (RFC 4119) of at most 8,192 bytes. Only an emergency call carries
  ///     it, to a trunk whose operator has requested it.
  ///   - parameters: parameters for the callee, by name: header fields that the trunk's `parameters` lists, or values that the
  ///     called user's app reads in ``Call/parameters``. At most 16, together 1,024 bytes.
  @discardableResult
  public func call(
    _ number: String, from: String? = nil, account: String? = nil, location: String? = nil, parameters: [String: String] = [:]
  ) -> Call {
    call(Handle(k: .phone, h: number), from: from, account: account, location: location, parameters: parameters)
  }

  /// Calls the number or address of a handle, or any name that the gateway has a route for.
  ///
  /// - Parameters:
  ///   - handle: the callee.
  ///   - from: the user's number that the callee sees; nil: the first.
  ///   - account: the user's account that the call belongs to; nil: the gateway's default.
  ///   - location: the caller's location, a PIDF-LO document, as for a number.
  ///   - parameters: parameters for the callee, as for a number.
  @discardableResult
  public func call(
    _ handle: Handle, from: String? = nil, account: String? = nil, location: String? = nil, parameters: [String: String] = [:]
  ) -> Call {
    let id = Identifier(random: .client)
    var callee = handle
    callee.h = String(handle.h.filter { !$0.isWhitespace }.prefix(256))
    let call = Call(id, direction: .outgoing, peer: callee, phone: self)
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

  /// Removes the device from the gateway's list, then returns; without a network it waits until the gateway is reached.
  public func logOut() async {
    guard engine != nil, state != .loggedOut else { return }
    give(.logOut)
    await withCheckedContinuation { logOutWaiters.append($0) }
  }

  /// Ends the calls, waits until the gateway has acknowledged every message, and closes the session: for a program that is about to
  /// exit. A process that exits at once may take the end of its call with it; the other party would hear silence until the gateway
  /// misses the media. Waits at most `limit`, for instance without a network. A push, a call or ``foreground(_:)`` connects again.
  public func finish(within limit: Duration = .seconds(5)) async {
    guard engine != nil else { return }
    for call in calls { call.end() }
    give(.foreground(false))
    let states = states
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        for await state in states where state != .connecting && state != .online { return }
      }
      group.addTask { try? await Task.sleep(for: limit) }
      await group.next()
      group.cancelAll()
    }
  }

  /// Sets the microphone permission; without it calls are not shown, or are reported as video so that the device unlocks
  /// (`forcesUnlock`).
  public func microphone(_ permission: MicrophonePermission) { give(.microphone(permission)) }
  /// The app enters the foreground, or leaves it.
  public func foreground(_ isOn: Bool) { give(.foreground(isOn)) }

  /// The last 500 events, for a bug report and for `trunkline-lab check-trace`: a header, then one line each. Numbers are masked;
  /// names, digits and tokens are omitted. Its format: docs/design/apple-stand-in.md.
  public var trace: [String] { engine?.trace.text ?? [] }

  /// Also appends the trace to a file from now on, which survives the process: at most 8 MiB. For tests on a device
  /// (docs/apps/on-device.md), directly after the phone is made. Before the first unlock lines wait in memory.
  public func keepTrace(at file: URL) {
    let path = file.path
    engine?.enqueue { $0.keepTrace(at: path) }
  }

  /// The system requests a call: from Recents, Contacts or Siri.
  package func noteStartCall(_ kind: Handle.Kind) {
    engine?.enqueue { $0.trace.startCall(kind, MonotonicTime.now()) }
  }

  /// Each state from now on; a slow reader misses intermediate states, never the last.
  public var states: AsyncStream<State> {
    let (stream, continuation) = AsyncStream.makeStream(of: State.self, bufferingPolicy: .bufferingNewest(1))
    let reader = UUID()
    continuation.yield(state)
    stateReaders[reader] = continuation
    continuation.onTermination = { [weak self] _ in Task { @MainActor in self?.stateReaders[reader] = nil } }
    return stream
  }

  /// Events from now on; a slow reader gets the oldest 256 waiting ones.
  public var events: AsyncStream<Event> {
    let (stream, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingOldest(256))
    let reader = UUID()
    eventReaders[reader] = continuation
    continuation.onTermination = { [weak self] _ in Task { @MainActor in self?.eventReaders[reader] = nil } }
    return stream
  }

  func act(_ call: Call, _ action: PhoneMachine.CallAction) { give(.act(call.identifier, action)) }
  private func give(_ input: PhoneMachine.Input) { engine?.enqueue { $0.give(input) } }

  // MARK: updates from the engine

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
    // the end of a call that was never shown here
    guard known != nil || info.state != .ended else { return }
    let call = known ?? Call(info.id, direction: info.isOutgoing ? .outgoing : .incoming, peer: info.peer, phone: self)
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
