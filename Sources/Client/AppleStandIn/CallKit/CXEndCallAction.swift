public import Foundation

/// The user declines or ends a call, or the system does (R11, R16).
open class CXEndCallAction: CXCallAction, @unchecked Sendable {
  open func fulfill(withDateEnded dateEnded: Date) { complete(isFulfilled: true, date: dateEnded) }
}
