import CTrunklineCurl
import HTTP
import TrunklineBytes
import TrunklinePlatform

/// One `CURLM` with its own connections, watched by the event loop. One thread.
final class ConnectionGroup {
  private let loop: EventLoop
  private let timerMoved: () -> Void
  private let multi: OpaquePointer
  private var transfers: [OpaquePointer: Transfer] = [:]
  private var watched: Set<Int32> = []
  /// When libcurl must be called, whatever its sockets do.
  private(set) var deadline = Instant.distantFuture
  private(set) var usedAt: Instant
  let madeAt: Instant
  /// When a server last answered over one of its connections.
  private(set) var answeredAt: Instant?
  var count: Int { transfers.count }

  init?(loop: EventLoop, timerMoved: @escaping () -> Void) {
    guard let multi = curl_multi_init() else { return nil }
    (self.loop, self.timerMoved, self.multi, usedAt, madeAt) = (loop, timerMoved, OpaquePointer(multi), loop.now, loop.now)
    _ = ccurl_multi_set_long(multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX)
    _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_HOST_CONNECTIONS, Limits.connectionsPerGroup)
    _ = ccurl_multi_set_long(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, Limits.streams)
    let me = Unmanaged.passUnretained(self).toOpaque()
    _ = ccurl_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, me)
    _ = ccurl_multi_set_pointer(multi, CURLMOPT_TIMERDATA, me)
    _ = ccurl_multi_set_socket(multi) { _, fd, what, user, _ in
      guard let user else { return 0 }
      Unmanaged<ConnectionGroup>.fromOpaque(user).takeUnretainedValue().watch(fd, what)
      return 0
    }
    _ = ccurl_multi_set_timer(multi) { _, milliseconds, user in
      guard let user else { return 0 }
      Unmanaged<ConnectionGroup>.fromOpaque(user).takeUnretainedValue().setTimer(milliseconds)
      return 0
    }
  }

  deinit { close() }

  private var isClosed = false
  /// Completions run inside libcurl's loop: if one closes the group, that happens after the loop.
  private var isActing = false
  private var isToClose = false
  private var handle: UnsafeMutableRawPointer { UnsafeMutableRawPointer(multi) }

  func start(_ request: HTTPClientRequest, tls: TLSFiles, completion: @escaping (Transfer.Ended) -> Void) {
    usedAt = loop.now
    func fail(_ why: String) {
      completion(Transfer.Ended(result: .failure(HTTPFailure(text: why)), isOnNew: true, wentAgain: false))
    }
    guard let transfer = Transfer(request, tls: tls, completion: completion) else { return fail("the request cannot be written") }
    transfers[transfer.key] = transfer
    if curl_multi_add_handle(handle, transfer.easy) != CURLM_OK {
      transfers[transfer.key] = nil
      fail("out of memory")
    }
  }

  /// One of its transfers has an answer.
  func answered() { answeredAt = loop.now }

  func timedOut() {
    deadline = .distantFuture
    act(CURL_SOCKET_TIMEOUT, 0)
  }

  /// Ends all transfers without completions.
  func close() {
    guard !isClosed else { return }
    guard !isActing else {
      isToClose = true
      return
    }
    isClosed = true
    for transfer in transfers.values { curl_multi_remove_handle(handle, transfer.easy) }
    transfers.removeAll()
    curl_multi_cleanup(handle)
    for fd in watched { loop.unregister(fd) }
    watched.removeAll()
    deadline = .distantFuture
  }

  private func setTimer(_ milliseconds: Int) {
    deadline = milliseconds < 0 ? .distantFuture : loop.now + .milliseconds(milliseconds)
    timerMoved()
  }

  private func watch(_ fd: curl_socket_t, _ what: Int32) {
    guard !isClosed else { return }
    if what == CURL_POLL_REMOVE {
      watched.remove(fd)
      loop.unregister(fd)
      return
    }
    var events: IOEvents = []
    if what & CURL_POLL_IN != 0 { events.insert(.readable) }
    if what & CURL_POLL_OUT != 0 { events.insert(.writable) }
    if watched.contains(fd) {
      try? loop.modify(fd, events)
    } else if (try? loop.register(fd, events, handler: { [weak self] events in self?.ready(fd, events) })) != nil {
      watched.insert(fd)
    }
  }

  private func ready(_ fd: Int32, _ events: IOEvents) {
    var mask: Int32 = 0
    if events.contains(.readable) { mask |= CURL_CSELECT_IN }
    if events.contains(.writable) { mask |= CURL_CSELECT_OUT }
    if events.hasFailure { mask |= CURL_CSELECT_ERR }
    act(fd, mask)
  }

  private func act(_ fd: curl_socket_t, _ mask: Int32) {
    guard !isClosed else { return }
    isActing = true
    var running: Int32 = 0
    _ = curl_multi_socket_action(handle, fd, mask, &running)
    var left: Int32 = 0
    while let message = curl_multi_info_read(handle, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
      let result = ccurl_message_result(message)
      curl_multi_remove_handle(handle, easy)
      usedAt = loop.now
      if let transfer = transfers.removeValue(forKey: OpaquePointer(easy)) { transfer.finish(result) }
    }
    isActing = false
    if isToClose { close() }
    timerMoved()
  }
}
