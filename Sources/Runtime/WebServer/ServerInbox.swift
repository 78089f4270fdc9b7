import Synchronization
import TrunklinePlatform

/// What other threads write for the server's, which reads it at the end of each step of its loop.
final class ServerInbox: Sendable {
  struct Content {
    /// By the request's number.
    var answers: [(UInt64, HTTPResponse)] = []
    /// Stays set.
    var stops = false
    var distrusts = false
    var reloads: [@Sendable (TLSFailure?) -> Void] = []
  }

  let loop: EventLoop
  private let content = Mutex(Content())
  private let wakes = Atomic<Bool>(false)

  init(_ loop: EventLoop) { self.loop = loop }

  func update(_ change: (inout Content) -> Void) {
    content.withLock { change(&$0) }
    wake()
  }

  func wake() {
    // Coalesced; the step that runs this, and the posts before it, handles everything.
    guard !wakes.exchange(true, ordering: .acquiringAndReleasing) else { return }
    // Weak, as a loop that has ended keeps its posts.
    let posted = loop.post { [weak self] in self?.wakes.store(false, ordering: .releasing) }
    if !posted { wakes.store(false, ordering: .releasing) }
  }

  func drain() -> Content {
    content.withLock { content in
      defer { (content.answers, content.reloads, content.distrusts) = ([], [], false) }
      return content
    }
  }
}
