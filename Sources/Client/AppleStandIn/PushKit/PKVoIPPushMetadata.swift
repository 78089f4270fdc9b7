public import Foundation

/// iOS 26.4: whether this push must be reported as a call (R3).
open class PKVoIPPushMetadata: NSObject, @unchecked Sendable {  // immutable
  public let mustReport: Bool

  init(mustReport: Bool) { self.mustReport = mustReport }
}
