import Logging
import Synchronization
import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform

/// All media of the process: `media-0`… with their sockets and sessions, and `dtls-0`. Used by the control thread; safe from any.
///
///     let plane = try MediaPlane(configuration: …, identity: certificate) { event in controlMailbox.post(.media(event)) }
///     let reservation = try plane.reserve(session: id, user: "alice", toward: trunkAddress)
///     plane.send(.addAppLeg(id, leg, local))
///     …
///     plane.send(.close(id))          // → .closed(id, statistics)
///     plane.stop()                    // ends all sessions, joins all threads
///
/// The event handler is called on media threads: it must only post to a mailbox.
public final class MediaPlane: Sendable {
  public let metrics: MediaMetrics
  /// Queue depths, for `MailboxReading.families`.
  public let mailboxes: [MailboxReading]
  let configuration: MediaPlaneConfiguration
  private let fingerprint: [UInt8]
  let workers: [MediaWorkerShared]
  private let handshakes: Mailbox<HandshakeWork>
  let ports: TrunkPorts
  struct State {
    var threads: [NamedThread] = []
    var threadOf: [MediaSessionID: Int] = [:]
    /// The thread of every user with calls, and how many.
    var users: [String: (thread: Int, calls: Int)] = [:]
    var usersOf: [MediaSessionID: [String]] = [:]
    /// Our address of each session's trunk leg, and whether it has moved.
    var boundTo: [MediaSessionID: (ip: IPAddress, hasMoved: Bool)] = [:]
    var undelivered: [MediaCommand] = []
    var isStopped = false
    var addresses = AddressBook()

    /// The session no longer binds its users to a thread.
    mutating func forget(_ session: MediaSessionID) {
      boundTo[session] = nil
      for user in usersOf.removeValue(forKey: session) ?? [] {
        guard let entry = users[user] else { continue }
        users[user] = entry.calls > 1 ? (entry.thread, entry.calls - 1) : nil
      }
    }
  }
  let state = Mutex(State())

  /// Binds the app sockets and starts the threads. Throws with the address and the setting if a port is in use. Without addresses
  /// every `reserve` fails until `use` adds some.
  public init(
    configuration: MediaPlaneConfiguration, identity: DTLSIdentity, logger: Logger? = nil,
    eventHandler: @escaping @Sendable (MediaEvent) -> Void
  ) throws(SystemError) {
    precondition((1...Limits.threads).contains(configuration.threads))
    self.configuration = configuration
    fingerprint = identity.fingerprint.bytes
    let metrics = MediaMetrics(threads: configuration.threads)
    self.metrics = metrics
    ports = TrunkPorts(configuration.trunkPorts)
    handshakes = try Mailbox(capacity: Limits.handshakeMailbox)
    let governor = LoadGovernor(
      limit: configuration.loadLimit, complexity: configuration.opusComplexity,
      assumedCost: configuration.assumedCallCost ?? CallCost.estimate(complexity: configuration.opusComplexity))
    let offset: Duration = .nanoseconds(WallClock.nowMicroseconds() * 1_000 - MonotonicClock.now().nanoseconds)
    var workers: [MediaWorkerShared] = []
    for index in 0..<configuration.threads {
      workers.append(
        try MediaWorkerShared(
          index: index, mailbox: try Mailbox(capacity: Limits.threadMailbox), handshakes: handshakes,
          metrics: metrics, wallClockOffset: offset, opusComplexity: configuration.opusComplexity, governor: governor,
          eventHandler: eventHandler))
    }
    metrics.watch(workers.map { ("media-\($0.index)", $0.load) })
    self.workers = workers
    mailboxes =
      workers.map { $0.mailbox.reading("media-\($0.index)") } + [handshakes.reading("dtls-0")]
    if let refused = use(configuration.addresses, localNetworks: configuration.localNetworks).first { throw refused }
    try start(identity, logger)
  }

  private func start(_ identity: DTLSIdentity, _ logger: Logger?) throws(SystemError) {
    do throws(SystemError) {
      for worker in workers {
        let thread = try NamedThread.start(
          name: "media-\(worker.index)", scheduling: configuration.isRealtime ? .realtime : .usual, nice: -10, logger: logger
        ) {
          do throws(SystemError) {
            var run = try MediaWorker(worker)
            run.run()
          } catch { logger?.critical("a media thread could not start", metadata: ["error": "\(error)"]) }
        }
        state.withLock { $0.threads.append(thread) }
      }
      let (mailbox, metrics) = (handshakes, metrics)
      let thread = try NamedThread.start(name: "dtls-0", logger: logger) {
        var run = HandshakeWorker(identity: identity, mailbox: mailbox, metrics: metrics)
        run.run()
      }
      state.withLock { $0.threads.append(thread) }
    } catch {
      stop()
      throw error
    }
  }

  /// Reserves the media resources of a call before its SDP is written: a thread (all calls of one user on one), a trunk port pair
  /// on the address that routes toward the trunk, and the candidates of the app leg. `close` releases them.
  ///
  /// With `gathers` the thread is notified by the next `wake`.
  /// - Parameter others: further users that the call rings. The call is on the thread of the first user with calls; a user
  ///   without calls gets the next ones on this thread.
  /// - Parameter asked: our address and the trunk's in its request. One of ours that the route would not choose, such as a
  ///   virtual one, is used for the media, too, unless media has another route.
  public func reserve(
    session: MediaSessionID, user: String, others: [String] = [], toward trunk: IPAddress?,
    asked: (own: IPAddress, peer: IPAddress)? = nil, gathers: Bool = false
  ) throws(MediaReservationError) -> MediaReservation {
    guard !state.withLock({ $0.isStopped }) else { throw .stopped }
    let everybody = [user] + others.filter { $0 != user }
    let worker = workers[thread(of: everybody)]
    guard worker.load.room.value > 0 else { throw .overloaded }
    guard worker.sessions.value < Int64(Limits.sessionsPerThread) else { throw .threadFull }
    let book = state.withLock { $0.addresses }
    guard let address = book.address(toward: trunk, asked: asked) else { throw .noAddress }
    let sockets = try ports.reserve(on: address.bind)
    worker.sessions.add(1)
    worker.load.room.add(-1)
    guard worker.mailbox.post(.open(session, sockets), gathers ? .gathered : .now) else {
      worker.sessions.add(-1)
      metrics.undelivered.increment()
      throw .threadFull
    }
    state.withLock { state in
      state.threadOf[session] = worker.index
      state.usersOf[session] = everybody
      state.boundTo[session] = (address.bind, false)
      for user in everybody { state.users[user, default: (worker.index, 0)].calls += 1 }
    }
    return MediaReservation(
      session: session, trunkAddress: SocketAddress(book.advertised(address, trunk), sockets.rtp.localAddress.port),
      appCandidates: book.candidates(thread: worker.index), fingerprint: fingerprint,
      thread: worker.index)
  }

  /// Why any `reserve` would fail now. Any thread; a few loads.
  public var shortage: MediaReservationError? {
    if workers.allSatisfy({ $0.load.room.value <= 0 }) { return .overloaded }
    // Without an address there is no port either, which is another reason.
    let count = max(1, state.withLock { $0.addresses.current.count })
    return ports.isExhausted(addresses: count) ? .portsExhausted : nil
  }

  /// The thread of the first user with calls, else the one with the most room.
  private func thread(of users: [String]) -> Int {
    let known = state.withLock { state -> Int? in
      for user in users { if let entry = state.users[user] { return entry.thread } }
      return nil
    }
    if let known { return known }
    func room(_ worker: MediaWorkerShared) -> (Int64, Int64) { (worker.load.room.value, -worker.sessions.value) }
    return workers.max { room($0) < room($1) }?.index ?? 0
  }

  /// Posts a command to its session's thread. False if that thread's mailbox is full: the command is lost, counted, and the
  /// caller should end the call; only `close` is kept and sent again with the next command.
  ///
  /// With `gathers` the thread is notified by the next `wake`: a real-time thread would otherwise run before its caller
  /// continues.
  @discardableResult public func send(_ command: MediaCommand, gathers: Bool = false) -> Bool {
    let session = command.session
    var isClose = false
    if case .close = command { isClose = true }
    let (index, waiting) = state.withLock { state -> (Int?, [MediaCommand]) in
      defer { state.undelivered.removeAll() }
      if isClose { state.forget(session) }
      return (isClose ? state.threadOf.removeValue(forKey: session) : state.threadOf[session], state.undelivered)
    }
    for (position, earlier) in waiting.enumerated() where !post(earlier, of: earlier.session, thread: nil, .now) {
      state.withLock { $0.undelivered.append(contentsOf: waiting[position...].dropFirst()) }
      break
    }
    guard let index else {
      metrics.unknownSession.increment()
      return false
    }
    return post(command, of: session, thread: index, gathers ? .gathered : .now)
  }

  /// Wakes the threads that have commands from `gathers`.
  public func wake() { for worker in workers { worker.mailbox.wake() } }

  private func post(_ command: MediaCommand, of session: MediaSessionID, thread: Int?, _ urgency: MailboxUrgency) -> Bool {
    if let thread {
      if workers[thread].mailbox.post(.command(command), urgency) { return true }
      metrics.undelivered.increment()
      if case .close = command {
        state.withLock { state in
          guard state.undelivered.count < Limits.undelivered else { return }
          state.undelivered.append(command)
          state.threadOf[session] = thread
        }
      }
      return false
    }
    guard let index = state.withLock({ $0.threadOf.removeValue(forKey: session) }) else { return true }
    return post(command, of: session, thread: index, urgency)
  }

  /// Ends every session (each with `closed`), then the threads; returns when they have ended. May be called twice.
  public func stop() {
    let threads = state.withLock { state -> [NamedThread] in
      defer { (state.isStopped, state.threads) = (true, []) }
      return state.threads
    }
    for worker in workers {
      while !threads.isEmpty, !worker.mailbox.post(.stop) { _ = worker.mailbox.event.wait(milliseconds: 1) }
    }
    for thread in threads.dropLast() { thread.join() }
    while !threads.isEmpty, !handshakes.post(.stop) { _ = handshakes.event.wait(milliseconds: 1) }
    threads.last?.join()
  }
}
