"""What libphonenumber makes of numbers, for OracleTests: a line `region, as dialled, what it is, its text` each, by tabs.

    oracle.py VERSION [--chance SEED COUNT]

Every region's example numbers of each type, as dialled in the country and abroad from the region and from two others; its short and emergency numbers;
all numbers of two and three digits, of which it says what is an emergency; or digits by chance. The version is that of the table: another one is no
oracle. A text of six digits or fewer that the region has as a short number is that, whatever else it could be; one that it does not know at all stays
as dialled, since it may be an extension. In three places the gateway is not to do what libphonenumber does; `expected` says why.
"""
import random
import re
import sys

import phonenumbers as p
from phonenumbers import PhoneNumberFormat, PhoneNumberType
from phonenumbers.phonemetadata import PhoneMetadata
from phonenumbers.shortnumberinfo import is_emergency_number

if p.__version__ != sys.argv[1]:
    sys.exit(f"phonenumbers is {p.__version__}, the table {sys.argv[1]}: pip install phonenumbers=={sys.argv[1]}")


def is_short(text, region):
    metadata = PhoneMetadata.short_metadata_for_region(region)
    if metadata is None:
        return False
    for found in (metadata.general_desc, metadata.short_code):
        if not found or not found.national_number_pattern or found.possible_length and len(text) not in found.possible_length:
            return False
        if not re.fullmatch(found.national_number_pattern, text):
            return False
    return True


def expected(text, region):
    digits = "".join(c for c in text if c.isdigit())
    hasPlus = "+" in text
    # some dialling pads put + before everything: an emergency is one all the same
    if len(digits) <= 6 and is_emergency_number(digits, region):
        return "emergency", digits
    # no country code begins with 0; libphonenumber reads what follows the + as dialled in the region, and so takes one for another
    if text.startswith("+0"):
        return "refused", ""
    if not hasPlus:
        if is_short(digits, region):
            return "short", digits
    isFree = not hasPlus and len(digits) <= 6
    try:
        number = p.parse(text, region)
    except p.NumberParseException:
        return ("asDialled", digits) if isFree else ("refused", "")
    if isFree and not p.is_valid_number(number):
        own = p.parse(text, region, keep_raw_input=True)
        if own.country_code_source != p.CountryCodeSource.FROM_NUMBER_WITH_IDD:
            return "asDialled", digits
    if p.is_possible_number_with_reason(number) != p.ValidationResult.IS_POSSIBLE:
        return "refused", ""
    result = p.format_number(number, PhoneNumberFormat.E164)
    # +2348…, dialled with one prefix too many, is left with it, and is another number when it is read again: `allow` and trunks know one spelling
    if p.format_number(p.parse(result), PhoneNumberFormat.E164) != result:
        return "refused", ""
    return "international", result


def say(region, text):
    kind, result = expected(text, region)
    print(region, text, kind, result, sep="\t")


def examples():
    regions = sorted(p.SUPPORTED_REGIONS)
    for index, region in enumerate(regions):
        others = [regions[(index + 83) % len(regions)], regions[(index + 171) % len(regions)]]
        for kind in PhoneNumberType.values():
            number = p.example_number_for_type(region, kind)
            if number is None:
                continue
            say(region, p.format_number(number, PhoneNumberFormat.NATIONAL))
            say(region, p.format_number_for_mobile_dialing(number, region, True) or p.format_number(number, PhoneNumberFormat.NATIONAL))
            for place in [region] + others:
                say(place, p.format_number(number, PhoneNumberFormat.INTERNATIONAL))
                say(place, p.format_out_of_country_calling_number(number, place))
        metadata = PhoneMetadata.short_metadata_for_region(region)
        for name in "emergency short_code toll_free premium_rate standard_rate carrier_specific sms_services".split():
            found = metadata and getattr(metadata, name)
            if found and found.example_number:
                for place in [region] + others:
                    say(place, found.example_number)
        for length in (2, 3):
            for number in range(10 ** length):
                text = str(number).zfill(length)
                if is_emergency_number(text, region):
                    say(region, text)
                    for place in others:
                        say(place, text)
    for code in sorted(p.COUNTRY_CODES_FOR_NON_GEO_REGIONS):
        number = p.example_number_for_non_geo_entity(code)
        for place in ("DE", "US", "AU"):
            say(place, p.format_number(number, PhoneNumberFormat.INTERNATIONAL))
            say(place, p.format_out_of_country_calling_number(number, place))


def by_chance(seed, count):
    chance = random.Random(seed)
    regions = sorted(p.SUPPORTED_REGIONS)
    for _ in range(count):
        region = chance.choice(regions)
        metadata = PhoneMetadata.metadata_for_region(region)
        text = "".join(chance.choice("0123456789") for _ in range(chance.randint(2, 14)))
        start = chance.choice(
            ["", "", "0", "00", "1", "+", "+" + str(metadata.country_code), str(metadata.country_code), metadata.national_prefix or ""])
        say(region, start + text)


if sys.argv[2:3] == ["--chance"]:
    by_chance(int(sys.argv[3]), int(sys.argv[4]))
else:
    examples()
