// Whoever tests with the stand-in reads its log.
@_exported public import PhoneLog
