public import CallModel
public import Logging
import Synchronization
import TrunklineBytes
public import TrunklinePlatform

/// The streams of all calls, on their own thread.
///
///     let streams = try Streams(logger: logger) { news in inbox.post(.stream(news)) }
///     streams.perform(.open(request))          // any thread; → .opened, or .refused; then .ended, once, unless we close
///     streams.perform(.close(call))
///     streams.stop()
///
/// While there is a stream the thread wakes every 5 ms: media threads write into rings and wake no thread.
public final class Streams: Sendable {
  private let mailbox: Mailbox<StreamCommand>
  private let loop: EventLoop
  private let thread: NamedThread
  private let statistics = StreamMetrics()
  private let onNews: @Sendable (StreamNews) -> Void

  /// `authorities`: PEM that signs the peers' certificates; nil: the system's. `onNews` is called on the streams' thread.
  public init(
    authorities: String?, logger: Logger, onNews: @escaping @Sendable (StreamNews) -> Void
  ) throws(SystemError) {
    let loop = try EventLoop(name: "streams")
    let mailbox = try Mailbox<StreamCommand>(capacity: Limits.commands)
    (self.loop, self.mailbox, self.onNews) = (loop, mailbox, onNews)
    let statistics = statistics
    thread = try NamedThread.start(name: "streams", nice: -5, logger: logger) {
      let worker = StreamWorker(
        loop: loop, mailbox: mailbox, authorities: authorities, statistics: statistics, logger: logger, onNews: onNews)
      do throws(SystemError) {
        try worker.start()
        loop.run()
      } catch { logger.critical("the streams' thread could not start", metadata: ["error": "\(error)"]) }
      worker.closeAll()
    }
  }

  /// Any thread. An `open` that does not fit is refused at once.
  public func perform(_ command: StreamCommand) {
    guard !mailbox.post(command), case .open(let request) = command else { return }
    onNews(.refused(request.call, "too many streams"))
  }

  /// Used from the next stream on. Any thread.
  public func replace(authorities: String?) { mailbox.post(.authorities(authorities)) }

  public func stop() {
    loop.stop()
    thread.join()
  }

  public var metrics: [MetricFamily] { statistics.families }
  public var queue: MailboxReading { mailbox.reading("streams") }
}

/// The state of the streams' thread.
private final class StreamWorker {
  private let loop: EventLoop
  private let mailbox: Mailbox<StreamCommand>
  private let statistics: StreamMetrics
  private let logger: Logger
  private let onNews: @Sendable (StreamNews) -> Void
  private var authorities: String? { didSet { context = nil } }
  /// For all streams, made for the first: it reads every authority, which lasts longer than the interval between two reads of the
  /// rings.
  private var context: TLSContext?
  private var legs: [CallID: StreamLeg] = [:]
  private var timer: EventLoop.TimerID?
  private var batch: [StreamCommand] = []

  init(
    loop: EventLoop, mailbox: Mailbox<StreamCommand>, authorities: String?, statistics: StreamMetrics, logger: Logger,
    onNews: @escaping @Sendable (StreamNews) -> Void
  ) {
    (self.loop, self.mailbox, self.authorities) = (loop, mailbox, authorities)
    (self.statistics, self.logger, self.onNews) = (statistics, logger, onNews)
  }

  func start() throws(SystemError) {
    timer = loop.addTimer("streams") { [unowned self] in tick() }
    try loop.register(mailbox.event.fd, .readable) { [unowned self] _ in drain() }
  }

  private func drain() {
    mailbox.drain(into: &batch)
    for command in batch {
      switch command {
      case .open(let request): open(request)
      case .digit(let call, let digit): legs[call]?.report(digit)
      case .close(let call): legs.removeValue(forKey: call)?.close()
      case .authorities(let path): authorities = path
      }
    }
    batch.removeAll(keepingCapacity: true)
  }

  private func open(_ request: StreamRequest) {
    let call = request.call
    guard legs.count < Limits.streams, legs[call] == nil else {
      statistics.streams[.refused].increment()
      return onNews(.refused(call, "too many streams"))
    }
    var tls: TLSContext?
    if request.target.url.isSecure {
      do throws(TLSFailure) { tls = try clientContext() } catch {
        statistics.streams[.refused].increment()
        return onNews(.refused(call, "\(error)"))
      }
    }
    let leg = StreamLeg(request, tls: tls, loop: loop, statistics: statistics) { [unowned self] news in report(news, call) }
    legs[call] = leg
    leg.begin(logger)
    arm()
  }

  private func clientContext() throws(TLSFailure) -> TLSContext {
    if let context { return context }
    // The session checks the peer's name.
    let made = try TLSContext(client: TLSClientSettings(identity: TLSFiles(authorities: authorities), host: ""))
    context = made
    return made
  }

  private func report(_ news: StreamNews, _ call: CallID) {
    switch news {
    case .opened: break
    case .refused(_, let why), .ended(_, let why, _):
      logger.info("a stream has ended", metadata: ["call": "\(call)", "why": "\(why)"])
      legs[call] = nil
    }
    onNews(news)
  }

  private func arm() {
    if let timer { loop.setTimer(timer, at: legs.isEmpty ? .distantFuture : loop.now + Limits.interval) }
  }

  private func tick() {
    for leg in Array(legs.values) {
      leg.pump()
      leg.look()
    }
    arm()
  }

  func closeAll() {
    for leg in legs.values { leg.close() }
    legs.removeAll()
  }
}
