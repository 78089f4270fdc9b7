public import Foundation

/// Whether this push must be reported as a call (R3).
@available(iOS 26.4, *)
open class PKVoIPPushMetadata: NSObject, @unchecked Sendable {  // immutable
  public let mustReport: Bool

  init(mustReport: Bool) { self.mustReport = mustReport }
}
