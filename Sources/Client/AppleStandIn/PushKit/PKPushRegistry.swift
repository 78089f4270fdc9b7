public import Dispatch
public import Foundation

/// Requests pushes, and passes them to its delegate on its queue. Earlier pushes wait until delegate and types are set.
open class PKPushRegistry: NSObject, @unchecked Sendable {  // mutable state is behind `lock`
  let process: AppProcess
  let queue: DispatchQueue
  private let lock = NSLock()
  private weak var storedDelegate: (any PKPushRegistryDelegate)?
  private var types: Set<PKPushType>?
  private var token: Data?

  /// A queue of nil is the main queue.
  public init(queue: DispatchQueue?) {
    (self.queue, process) = (queue ?? .main, .current)
    super.init()
    process.uses(self.queue)
    process.made(self)
  }

  public weak var delegate: (any PKPushRegistryDelegate)? {
    get { lock.withLock { storedDelegate } }
    set {
      lock.withLock { storedDelegate = newValue }
      process.registryChanged()
    }
  }

  public var desiredPushTypes: Set<PKPushType>? {
    get { lock.withLock { types } }
    set {
      lock.withLock { types = newValue }
      if newValue?.contains(.voIP) == true { process.send(.wantsPushes) }
      process.registryChanged()
    }
  }

  public func pushToken(for type: PKPushType) -> Data? { type == .voIP ? lock.withLock { token } : nil }

  // MARK: for its process

  var acceptsPushes: Bool { lock.withLock { storedDelegate != nil && types?.contains(.voIP) == true } }

  func updated(_ data: Data) {
    lock.withLock { token = data }
    process.post(on: queue) { [weak self] in
      guard let self else { return }
      delegate?.pushRegistry(self, didUpdate: PKPushCredentials(type: .voIP, token: data), for: .voIP)
    }
  }

  func invalidated() {
    lock.withLock { token = nil }
    process.post(on: queue) { [weak self] in
      guard let self else { return }
      delegate?.pushRegistry(self, didInvalidatePushTokenFor: .voIP)
    }
  }

  /// R1: `pushHandled` follows when the method returns, in the same block of the queue.
  func received(_ push: Int, payload: String, mustReport: Bool?) {
    process.post(on: queue) { [weak self] in
      guard let self else { return }
      process.handles(push)
      let (payload, completed) = (
        PKPushPayload(type: .voIP, json: payload), { @Sendable [process] in process.send(.pushCompleted(push)) }
      )
      if #available(iOS 26.4, *), let mustReport {
        delegate?.pushRegistry(
          self, didReceiveIncomingVoIPPushWith: payload, metadata: PKVoIPPushMetadata(mustReport: mustReport),
          withCompletionHandler: completed)
      } else {
        delegate?.pushRegistry(self, didReceiveIncomingPushWith: payload, for: .voIP, completion: completed)
      }
      process.send(.pushHandled(push))
    }
  }
}
