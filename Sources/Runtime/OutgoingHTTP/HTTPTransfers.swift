import CTrunklineCurl
import HTTP
import Logging
import TrunklineBytes
import TrunklinePlatform

/// libcurl's multi interface on an event loop: HTTP/2 over TLS 1.2 or newer, many streams per connection; the only extra thread
/// is libcurl's resolver. One thread (the loop's). A request costs about 130 µs CPU.
///
/// A connection that stops answering is replaced:
///
/// | a request on it | then |
/// |---|---|
/// | broke, or is unacknowledged for so long that the kernel breaks it; it had served before | the next uses a new connection, as does this one if it `goesAgain` |
/// | the same, and the connection is new | fails: the server or the network path is at fault |
/// | has no answer in time, and no other request was answered since it began | fails; the next uses a new connection |
final class HTTPTransfers {
  typealias Completion = (Result<HTTPClientResponse, HTTPFailure>) -> Void
  private let loop: EventLoop
  private var tls: TLSFiles
  private var timer: EventLoop.TimerID?
  private var groups: [String: ConnectionGroup] = [:]
  /// Groups that accept no new requests; each is closed when its last request has ended.
  private var retired: [ConnectionGroup] = []
  private let logger: Logger

  init(loop: EventLoop, tls: TLSFiles, logger: Logger) {
    (self.loop, self.tls, self.logger) = (loop, tls, logger)
    timer = loop.addTimer("transfers") { [unowned self] in onTimer() }
  }

  /// `completion` is called exactly once, later, on the loop's thread, unless `close` is called before.
  func start(_ request: HTTPClientRequest, completion: @escaping Completion) {
    let group: ConnectionGroup
    if let known = groups[request.connection] {
      group = known
    } else {
      if groups.count >= Limits.groups { closeIdlest() }
      guard let made = ConnectionGroup(loop: loop, timerMoved: { [unowned self] in arm() }) else {
        return completion(.failure(HTTPFailure(text: "out of memory")))
      }
      groups[request.connection] = made
      group = made
    }
    let files = request.showsCertificate ? tls : TLSFiles(authorities: tls.authorities)
    let began = loop.now
    group.start(request, tls: files) { [unowned self, unowned group] ended in
      completed(request, as: ended, in: group, since: began, completion)
    }
    arm()
  }

  private func completed(
    _ request: HTTPClientRequest, as ended: Transfer.Ended, in group: ConnectionGroup, since began: Instant,
    _ completion: @escaping Completion
  ) {
    guard case .failure(var failure) = ended.result else {
      if ended.wentAgain { forgotten(request, in: group, because: "the connection broke without an answer") }
      group.answered()
      return completion(ended.result)
    }
    let hadServed = !ended.isOnNew && group.answeredAt != nil
    if ended.isTimeout {
      // a connection that answered another request is alive: only the server of this request is slow
      if group.answeredAt.map({ $0 <= began }) ?? true { retire(request.connection, failedSince: began) }
    } else if hadServed {
      forgotten(request, in: group, because: failure.text)
      retire(request.connection, failedSince: began)
    }
    failure.isOfOld = hadServed
    let left = request.timeout - (loop.now - began)
    guard request.goesAgain, hadServed, !ended.isTimeout, left > .zero else { return completion(.failure(failure)) }
    var again = request
    again.timeout = left
    again.goesAgain = false
    start(again, completion: completion)
  }

  /// Logs each abandoned connection once.
  private func forgotten(_ request: HTTPClientRequest, in group: ConnectionGroup, because why: String) {
    guard groups[request.connection] === group else { return }
    logger.notice(
      "a connection stalled: its requests are sent over a new one",
      metadata: ["to": "\(Self.host(of: request.url))", "why": "\(why)"])
  }

  /// Only the host: the rest of the URL may hold a device's secret.
  private static func host(of url: String) -> Substring {
    (url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]).prefix { $0 != "/" && $0 != "?" }
  }

  /// The next request of this group opens a new connection; those under way end on the old one.
  /// - Parameter since: when the failed request began. A connection made later is kept, so that many requests that fail on one
  ///   connection cost one new connection.
  func retire(_ name: String, failedSince since: Instant? = nil) {
    guard let group = groups[name], since.map({ group.madeAt <= $0 }) ?? true else { return }
    groups[name] = nil
    retired.append(group)
    sweep()
  }

  /// Applies from the next request on. Every group gets a new connection, whose certificate is checked with the new files.
  func replace(_ files: TLSFiles) {
    guard files != tls else { return }
    tls = files
    for name in Array(groups.keys) { retire(name) }
  }

  /// Ends everything without completions.
  func close() {
    for group in groups.values { group.close() }
    for group in retired { group.close() }
    groups.removeAll()
    retired.removeAll()
    if let timer { loop.setTimer(timer, at: nil) }
  }

  var transfers: Int { groups.values.reduce(0) { $0 + $1.count } + retired.reduce(0) { $0 + $1.count } }

  private func closeIdlest() {
    let idle = groups.filter { $0.value.count == 0 }.min { $0.value.usedAt < $1.value.usedAt }
    if let name = (idle ?? groups.min { $0.value.usedAt < $1.value.usedAt })?.key { retire(name) }
  }

  private func onTimer() {
    let now = loop.now
    for group in groups.values where group.deadline <= now { group.timedOut() }
    for group in retired where group.deadline <= now { group.timedOut() }
    for (name, group) in groups where group.count == 0 && now - group.usedAt > Limits.idleGroup { retire(name) }
    sweep()
    arm()
  }

  private func sweep() {
    for group in retired where group.count == 0 { group.close() }
    retired.removeAll { $0.count == 0 }
  }

  private func arm() {
    guard let timer else { return }
    var next = Instant.distantFuture
    for group in groups.values { next = min(next, group.deadline) }
    for group in retired { next = min(next, group.deadline) }
    // Retired groups are swept here too, so the timer runs again within a second while there are any.
    if !retired.isEmpty { next = min(next, loop.now + .seconds(1)) }
    loop.setTimer(timer, at: next == .distantFuture ? nil : next)
  }
}

struct HTTPFailure: Error, Sendable {
  var text: String
  /// The connection had served before and broke, or was silent: this does not show that the server fails.
  var isOfOld = false
}
