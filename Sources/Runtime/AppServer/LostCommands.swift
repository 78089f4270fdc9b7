import AppSessions
import Synchronization

/// Commands of control that did not fit the app thread's queue, in bounded memory: their devices' sessions end, so that their
/// clients reconnect for a snapshot.
final class LostCommands: Sendable {
  struct Content {
    var devices: Set<DeviceKey> = []
    var welcomes: Set<SessionID> = []
    var requests: Set<HTTPRequestID> = []
    /// The latest list of nodes; sessions that are at another node now.
    var nodes: [SessionNode]?
    var replaced: [DeviceKey: SessionID] = [:]
    var drains = false
  }
  private let content = Mutex(Content())

  /// Any thread: this command did not fit the queue.
  func note(_ command: SessionCommand) {
    content.withLock { lost in
      switch command {
      case .welcome(let id, _, _, _), .refuse(let id, _): lost.welcomes.insert(id)
      case .send(let device, _, _), .callLive(let device, _), .callDead(let device, _), .notify(let device, _, _):
        lost.devices.insert(device)
      case .answer(let token, _): lost.devices.insert(token.device)
      case .revoke(let device): lost.devices.insert(device)
      case .httpAnswer(let id, _): lost.requests.insert(id)
      // A device sends its own version with a request, and the answer is the present one.
      case .directory: break
      case .wakesOver: break  // A session opened by that wake token finds that its call has ended.
      case .nodes(let nodes): lost.nodes = nodes
      // 4008 would bring its client back here, in competition with its newer session; one that does not fit even here ends by its
      // silence.
      case .replace(let device, let session): if lost.replaced.count < Limits.commands { lost.replaced[device] = session }
      case .drain: lost.drains = true
      }
    }
  }

  /// The app thread.
  func drain() -> Content {
    content.withLock { lost in
      defer { lost = Content() }
      return lost
    }
  }
}
