// Tests with the stand-in read its log.
@_exported public import TrunklinePhoneLog
