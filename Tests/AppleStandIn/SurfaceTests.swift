import AppleStandIn
import Foundation
import Testing

/// Values that an app compares, copies and decodes as it does with Apple's frameworks.
@Suite struct SurfaceTests {
  @Test func `errors have CallKit's domains and codes, and are matched by code`() {
    let refusal: any Error = CXErrorCodeIncomingCallError(.filteredByBlockList)
    #expect((refusal as NSError).domain == "com.apple.CallKit.error.incomingcall" && (refusal as NSError).code == 4)
    #expect((refusal as? CXErrorCodeIncomingCallError)?.code == .filteredByBlockList)
    let request = CXErrorCodeRequestTransactionError(.maximumCallGroupsReached) as NSError
    #expect(request.domain == "com.apple.CallKit.error.requesttransaction" && request.code == 7)
    let filter = CXErrorCodeNotificationServiceExtensionError(.missingNotificationFilteringEntitlement) as NSError
    #expect(filter.code == 2 && (CXError(.missingVoIPBackgroundMode) as NSError).code == 3)
    #expect((AVAudioSession.ErrorCode(.insufficientPriority) as NSError).code == 561_017_449)
  }

  @Test func `handles are compared by type and value`() {
    let phone = CXHandle(type: .phoneNumber, value: "+1555")
    #expect(phone == CXHandle(type: .phoneNumber, value: "+1555") && phone.isEqual(to: phone))
    #expect(phone != CXHandle(type: .generic, value: "+1555") && phone != CXHandle(type: .phoneNumber, value: "+1556"))
  }

  @Test func `a copied configuration and a copied update keep every field`() throws {
    let configuration = CXProviderConfiguration()
    #expect(configuration.maximumCallGroups == 2 && configuration.maximumCallsPerCallGroup == 5)
    #expect(configuration.includesCallsInRecents && !configuration.supportsVideo && configuration.supportedHandleTypes.isEmpty)
    (configuration.maximumCallGroups, configuration.maximumCallsPerCallGroup) = (1, 3)
    (configuration.includesCallsInRecents, configuration.supportsVideo) = (false, true)
    (configuration.ringtoneSound, configuration.iconTemplateImageData) = ("ring.caf", Data([1]))
    (configuration.supportedHandleTypes, configuration.supportsAudioTranslation) = ([.generic], true)
    let copy = try #require(configuration.copy() as? CXProviderConfiguration)
    #expect(copy.maximumCallGroups == 1 && copy.maximumCallsPerCallGroup == 3 && copy.supportsAudioTranslation)
    #expect(!copy.includesCallsInRecents && copy.supportsVideo && copy.supportedHandleTypes == [.generic])
    #expect(copy.ringtoneSound == "ring.caf" && copy.iconTemplateImageData == Data([1]))

    let update = CXCallUpdate()
    update.remoteHandle = CXHandle(type: .generic, value: "jane")
    (update.localizedCallerName, update.hasVideo, update.supportsHolding) = ("Jane", true, false)
    let other = try #require(update.copy() as? CXCallUpdate)
    #expect(other.remoteHandle == update.remoteHandle && other.localizedCallerName == "Jane")
    #expect(other.hasVideo && !other.supportsHolding && other.supportsDTMF)
  }

  @Test func `a transaction is complete when its actions are`() {
    let (first, second) = (CXEndCallAction(call: UUID()), CXSetMutedCallAction(call: UUID(), muted: true))
    let transaction = CXTransaction(action: first)
    transaction.addAction(second)
    first.fulfill()
    #expect(first.isComplete && !transaction.isComplete)
    second.fail()
    #expect(transaction.isComplete && transaction.actions.count == 2)
  }
}
