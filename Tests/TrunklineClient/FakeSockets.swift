import AppProtocol
import Bytes
import Foundation
import Synchronization
import TrunklineClient

/// A gateway by hand: what the phone sends is kept, what it hears is what the test says.
final class FakeSockets: SocketConnector {
  private struct State {
    var opened: [String] = []
    var sent: [String] = []
    var posts: [String] = []
    var events: (@Sendable (SocketEvent) -> Void)?
  }
  private struct One: Socket {
    let owner: FakeSockets
    func send(_ text: [UInt8]) { owner.sent(String(decoding: text, as: UTF8.self)) }
    func close(_ code: UInt16) {}
  }

  private let state = Mutex(State())
  /// Each `hello` as it is sent.
  let hellos = AsyncStream.makeStream(of: String.self)

  func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket {
    state.withLock { state in
      state.opened.append(url)
      state.events = events
    }
    events(.opened)
    return One(owner: self)
  }

  func post(_ url: String, bearer: String, body: [UInt8]) { state.withLock { $0.posts.append(url) } }

  private func sent(_ text: String) {
    state.withLock { $0.sent.append(text) }
    if text.contains(#""t":"hello""#) { hellos.continuation.yield(text) }
  }

  func hear(_ event: SocketEvent) { state.withLock { $0.events }?(event) }

  /// The answer to the last hello.
  func welcome() {
    let hello = sent.last { $0.contains(#""t":"hello""#) }
      .flatMap { try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] }
    let id = (hello?["id"] as? String).flatMap { Identifier($0) }
    let welcome = Welcome(
      sid: "s", resumeToken: "r", resumed: false, replayFrom: 1, time: 0, hb: 15_000, ice: [], calls: [])
    hear(.received(ServerFrame(.welcome(welcome), re: id).encoded()))
  }

  var opened: [String] { state.withLock { $0.opened } }
  var sent: [String] { state.withLock { $0.sent } }
  var posts: [String] { state.withLock { $0.posts } }
}
