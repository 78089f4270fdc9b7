import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineTURN

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// State of the media thread, which makes and releases it.
final class MediaLoop {
  /// A call with its sockets; noncopyable media needs a box.
  final class Live {
    var media: ClientMedia
    var sockets: [DatagramSocket]
    var oldSockets: [DatagramSocket] = []
    var closesOldAt: Instant?
    /// Connections to TURN servers, by number.
    var relays: [Int: any RelaySocket] = [:]
    init(_ media: consuming ClientMedia, _ sockets: [DatagramSocket]) {
      self.media = media
      self.sockets = sockets
    }
    deinit { for relay in relays.values { relay.close() } }
  }

  let thread: MediaThread
  private let wakeUp: Int32
  private let report: @Sendable (MediaThread.Report) -> Void
  var calls: [Identifier: Live] = [:]
  private var listening: Identifier?
  private var mixing: [Identifier] = []
  private var testing: Identifier?
  private var isAudioOn = false
  private var nextFrame = Instant.zero
  private var nextTestFrame = Instant.zero
  private var deadlines = DeadlineGuard()
  private var nextStatistics = Instant.zero
  private var isStopped = false
  private var servers: [TURNServer] = []
  var output = ClientMedia.Output()
  private var frame = ContiguousArray<Int16>(repeating: 0, count: MediaLimits.playedSamples)
  private var mixed = ContiguousArray<Int16>(repeating: 0, count: MediaLimits.playedSamples)

  init(_ thread: MediaThread, _ wakeUp: Int32, _ report: @escaping @Sendable (MediaThread.Report) -> Void) {
    (self.thread, self.wakeUp, self.report) = (thread, wakeUp, report)
  }

  func run() {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: MediaLimits.datagramBytes, alignment: 8)
    defer { buffer.deallocate() }
    var polls: [pollfd] = []
    while !isStopped {
      polls.removeAll(keepingCapacity: true)
      polls.append(pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0))
      for live in calls.values {
        for socket in live.sockets { polls.append(pollfd(fd: socket.fd, events: Int16(POLLIN), revents: 0)) }
        for socket in live.oldSockets { polls.append(pollfd(fd: socket.fd, events: Int16(POLLIN), revents: 0)) }
      }
      let ready = poll(&polls, nfds_t(polls.count), timeout)
      // before the commands, which may open and close sockets
      if ready > 0 { receive(polls[1...], buffer) }
      if ready > 0, polls[0].revents != 0 {
        drainWakeUp()
        for command in thread.drainCommands() { handle(command) }
        for news in thread.drainRelayNews() { handle(news) }
      }
      timers(MonotonicTime.now())
    }
  }

  private func drainWakeUp() {
    var bytes: UInt64 = 0
    while read(wakeUp, &bytes, 8) > 0 {}
  }

  /// Milliseconds for `poll`; −1: without limit.
  private var timeout: Int32 {
    var due: Instant?
    func consider(_ other: Instant?) { if let other { due = min(due ?? other, other) } }
    for live in calls.values {
      consider(live.media.nextDeadline.map(deadlines.due))
      consider(live.closesOldAt)
    }
    if isExchanging { consider(nextFrame) }
    if isTesting { consider(nextTestFrame) }
    if !calls.isEmpty { consider(nextStatistics) }
    guard let due else { return -1 }
    let wait = (due - MonotonicTime.now()).nanoseconds
    return wait <= 0 ? 0 : Int32(clamping: (wait + 999_999) / 1_000_000)
  }

  private var isExchanging: Bool { isAudioOn && listening != nil }
  private var isTesting: Bool { testing.map { calls[$0] != nil } ?? false }

  // MARK: commands

  private func handle(_ command: MediaThread.Command) {
    let now = MonotonicTime.now()
    switch command {
    case .call(let id, .close):
      let live = calls.removeValue(forKey: id)
      live?.media.handle(.close, at: now, into: &output)
      if let live { update(id, live, now) }
      report(.closed(id, live?.media.statistics ?? .init()))
    case .call(let id, let request):
      guard let live = calls[id] ?? open(id, request) else { return }
      if case .offer(let generation) = request, generation > 1 { renew(live) }
      live.media.handle(request, at: now, into: &output)
      update(id, live, now)
      reportConnected()
    case .listen(let id):
      listening = id
      reportConnected()
      thread.handle.captured.drain()
      nextFrame = now
    case .test(let id):
      testing = id
      nextTestFrame = now
    case .mix(let others): mixing = Array(others.prefix(MediaLimits.mixedCalls))
    case .audio(let isOn):
      isAudioOn = isOn
      thread.handle.captured.drain()
      nextFrame = now
    case .relays(let servers): self.servers = servers
    case .stop: isStopped = true
    }
  }

  private func reportConnected() {
    let isConnected = listening.flatMap { calls[$0]?.media.isConnected } ?? false
    thread.handle.connected.store(isConnected, ordering: .relaxed)
  }

  private func sockets() -> [DatagramSocket] {
    interfaceAddresses(withLoopback: thread.withLoopback.load(ordering: .relaxed)).compactMap { DatagramSocket(bind: $0) }
  }

  /// Queried only if no socket has IPv4. Blocks for a DNS query in a network that gives no other way.
  private func nat64(_ sockets: [DatagramSocket]) -> NAT64? {
    guard !sockets.isEmpty, sockets.allSatisfy({ $0.local.ip.family == .v6 }) else { return nil }
    return lookUpIPv6(NAT64.name).lazy.compactMap { NAT64(answer: $0) }.first
  }

  private func open(_ id: Identifier, _ request: ClientCall.MediaRequest) -> Live? {
    switch request {
    case .answer, .offer: break
    case .apply, .activate, .mute, .close: return nil
    }
    let sockets = sockets()
    guard var configuration = ClientMedia.Configuration(localAddresses: sockets.map(\.local), identity: thread.identity) else {
      return nil
    }
    configuration.nat64 = nat64(sockets)
    configuration.relays = servers
    let live = Live(ClientMedia(configuration: configuration, random: .client), sockets)
    if calls.isEmpty { nextStatistics = MonotonicTime.now() + MediaLimits.statisticsInterval }
    calls[id] = live
    return live
  }

  /// Opens new sockets for a new generation, as the path may have changed. The old ones serve until the new generation has its
  /// pair.
  private func renew(_ live: Live) {
    let fresh = sockets()
    live.media.use(relays: servers)
    guard !fresh.isEmpty else { return }
    if live.oldSockets.count < MediaLimits.sockets { live.oldSockets += live.sockets }
    live.sockets = fresh
    live.closesOldAt = nil
    live.media.use(localAddresses: fresh.map(\.local), nat64: nat64(fresh))
  }

  // MARK: datagrams

  /// - Parameter polls: those of all sockets, in the order of `calls`.
  private func receive(_ polls: ArraySlice<pollfd>, _ buffer: UnsafeMutableRawBufferPointer) {
    var index = polls.startIndex
    for (id, live) in calls {
      for socket in live.sockets {
        if polls[index].revents != 0 { receive(id, live: live, on: socket, into: buffer) }
        index += 1
      }
      for socket in live.oldSockets {
        if polls[index].revents != 0 { receive(id, live: live, on: socket, into: buffer) }
        index += 1
      }
    }
  }

  private func receive(_ id: Identifier, live: Live, on socket: DatagramSocket, into buffer: UnsafeMutableRawBufferPointer) {
    while let (count, from) = socket.receive(into: buffer) {
      let (now, datagram) = (MonotonicTime.now(), UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
      live.media.receive(datagram, from: from, to: socket.local, at: now, into: &output)
      update(id, live, now)
    }
  }

  func update(_ id: Identifier, _ live: Live, _ now: Instant) {
    output.forEachDatagram { bytes, local, remote in
      let socket = live.sockets.first { $0.local == local } ?? live.oldSockets.first { $0.local == local }
      socket?.send(bytes, to: remote)
    }
    handleRelayed(id, live)
    for reported in output.reports {
      if case .connected = reported, !live.oldSockets.isEmpty { live.closesOldAt = now + MediaLimits.oldSockets }
      report(.media(id, reported))
    }
    output.removeAll()
  }

  // MARK: time

  private func timers(_ now: Instant) {
    for (id, live) in calls {
      if let due = live.media.nextDeadline, due <= now {
        live.media.handleTimeout(at: now, into: &output)
        update(id, live, now)
      }
      if let due = live.closesOldAt, due <= now { (live.oldSockets, live.closesOldAt) = ([], nil) }
    }
    deadlines.ran(at: now)
    if isExchanging, nextFrame <= now {
      exchange(now)
      nextFrame = nextFrame + MediaLimits.frame
      if now - nextFrame > .milliseconds(200) { nextFrame = now + MediaLimits.frame }
    }
    if isTesting, nextTestFrame <= now {
      exchangeTest(now)
      nextTestFrame = max(nextTestFrame + MediaLimits.frame, now)
    }
    if !calls.isEmpty, nextStatistics <= now {
      nextStatistics = now + MediaLimits.statisticsInterval
      for (id, live) in calls { report(.statistics(id, live.media.statistics)) }
    }
  }

  /// Sends captured frames and keeps a frame ready to be played: the audio unit sets the pace.
  private func exchange(_ now: Instant) {
    guard let listening, let live = calls[listening] else { return }
    let handle = thread.handle
    for _ in 0..<MediaLimits.framesPerStep {
      var room = frame.mutableSpan
      guard handle.captured.read(into: &room) else { break }
      live.media.send(captured: frame.span, into: &output)
      for id in mixing {
        guard let other = calls[id] else { continue }
        update(listening, live, now)
        other.media.send(captured: frame.span, into: &output)
        update(id, other, now)
      }
    }
    let ready = MediaLimits.playedSamples + handle.burst.load(ordering: .relaxed)
    for _ in 0..<MediaLimits.framesPerStep where handle.played.count <= ready {
      var room = frame.mutableSpan
      live.media.play(into: &room, at: now)
      for id in mixing { add(id, now) }
      handle.played.write(frame.span)
    }
    update(listening, live, now)
  }
}

extension MediaLoop {
  /// 400 Hz at −23 dBov: a frame contains eight whole periods, so that frames join without a step.
  private static let tone = ContiguousArray(
    (0..<MediaLimits.playedSamples).map { index in Int16(3_300 * sin(2 * Double.pi * Double(index) / 40)) })

  /// Sends a frame of the tone and decodes one received frame, which is only measured.
  private func exchangeTest(_ now: Instant) {
    guard let testing, let live = calls[testing] else { return }
    live.media.send(captured: Self.tone.span, into: &output)
    var room = mixed.mutableSpan
    live.media.play(into: &room, at: now)
    update(testing, live, now)
  }

  /// Adds the received audio of another call of the group to `frame`.
  private func add(_ id: Identifier, _ now: Instant) {
    guard let other = calls[id] else { return }
    var room = mixed.mutableSpan
    other.media.play(into: &room, at: now)
    for index in frame.indices { frame[index] = Int16(clamping: Int32(frame[index]) + Int32(mixed[index])) }
  }
}

extension RandomSource {
  /// The system's cryptographic generator.
  static var client: RandomSource { RandomSource { UInt64.random(in: .min ... .max) } }
}
