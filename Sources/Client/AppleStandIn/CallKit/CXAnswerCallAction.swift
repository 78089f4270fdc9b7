public import Foundation

/// The user answers an incoming call.
open class CXAnswerCallAction: CXCallAction, @unchecked Sendable {
  open func fulfill(withDateConnected dateConnected: Date) { complete(isFulfilled: true, date: dateConnected) }
}
