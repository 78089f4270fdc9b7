import Foundation
import Synchronization
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClient

/// A gateway by hand: what the phone sends is kept, what it hears is what the test says.
final class FakeSockets: SocketConnector {
  private struct State {
    var opened: [String] = []
    var sent: [String] = []
    var posts: [String] = []
    var events: [@Sendable (SocketEvent) -> Void] = []
    var closes: [String] = []
    var isHanging = false
    var hasAlternate = false
  }
  private struct One: Socket {
    let owner: FakeSockets
    let url: String
    func send(_ text: [UInt8]) { owner.sent(String(decoding: text, as: UTF8.self)) }
    func close(_ code: UInt16) { owner.closed("\(url) \(code)") }
  }

  private let state = Mutex(State())
  /// Each `hello` as it is sent.
  let hellos = AsyncStream.makeStream(of: String.self)

  func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket {
    let isHanging = state.withLock { state in
      state.opened.append(url)
      state.events.append(events)
      return state.isHanging
    }
    if !isHanging { events(.opened) }
    return One(owner: self, url: url)
  }

  /// Attempts neither open nor fail from now on.
  func hang() { state.withLock { $0.isHanging = true } }
  /// The machine has another interface; each attempt over it comes here, and does nothing of itself.
  func haveAlternate() { state.withLock { $0.hasAlternate = true } }
  let alternates = AsyncStream.makeStream(of: String.self)

  func openAlternate(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> (any Socket)? {
    let isThere = state.withLock { state in
      if state.hasAlternate { state.events.append(events) }
      return state.hasAlternate
    }
    guard isThere else { return nil }
    alternates.continuation.yield(url)
    return One(owner: self, url: "alternate " + url)
  }

  func post(_ url: String, bearer: String, body: [UInt8]) { state.withLock { $0.posts.append(url) } }

  private func sent(_ text: String) {
    state.withLock { $0.sent.append(text) }
    if text.contains(#""t":"hello""#) { hellos.continuation.yield(text) }
  }

  private func closed(_ text: String) {
    state.withLock { $0.closes.append(text) }
    closings.continuation.yield(text)
  }
  /// Each socket that the phone closes, with the code.
  let closings = AsyncStream.makeStream(of: String.self)

  /// - Parameter number: of the socket; nil: of the newest.
  func deliver(_ event: SocketEvent, on number: Int? = nil) {
    let heard = state.withLock { state in number.map { state.events[$0] } ?? state.events.last }
    heard?(event)
  }

  /// The answer to the last hello.
  func welcome(node: String? = nil, calls: [CallSnapshot] = []) {
    let hello = sent.last { $0.contains(#""t":"hello""#) }
      .flatMap { try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
    let id = (hello?["id"] as? String).flatMap { Identifier($0) }
    let welcome = Welcome(
      sid: "s", resumeToken: "r", resumed: false, replayFrom: 1, time: 0, hb: 15_000, ice: [], calls: calls, node: node,
      url: node.map { "wss://\($0)" })
    deliver(.received(ServerFrame(.welcome(welcome), re: id).encoded()))
  }

  var opened: [String] { state.withLock { $0.opened } }
  var sent: [String] { state.withLock { $0.sent } }
  var posts: [String] { state.withLock { $0.posts } }
  var closes: [String] { state.withLock { $0.closes } }
}
