"""Personal data with check digits that hold, by other people's libraries: python-stdnum and phonenumbers."""
import importlib, random, re
from values import ALPHABETS, UP, base58check, blob, text

REGIONS = 'US CA GB DE FR ES IT NL BE CH AT SE NO DK FI PL CZ PT IE BR MX AR CL CO PE IN CN JP KR SG AU NZ ZA NG KE EG TR AE SA IL RU UA RO HU GR TH VN PH ID MY'.split()


def field(rng, name, arg):
    """The parts of a number that are not just random digits."""
    two = lambda lo, hi: f'{rng.randrange(lo, hi):02d}'
    date = {'yy': two(50, 99), 'mm': two(1, 13), 'dd28': two(1, 29), 'yyyy': str(rng.randrange(1950, 2000))}
    made = {
        **date, 'ymd': date['yy'] + date['mm'] + date['dd28'], 'dmy': date['dd28'] + date['mm'] + date['yy'],
        'dmyyy': date['dd28'] + date['mm'] + '9' + date['yy'], 'HM': rng.choice('HM'), 'mxst': rng.choice(['DF', 'JC', 'NL', 'MC']),
        'ninoa': rng.choice(['AB', 'CE', 'JG', 'PR', 'SX']), 'abcd': rng.choice('ABCD'), 'itm': rng.choice('ABCDEHLMPRST'),
        'itd': two(1, 29), 'dayofyear': f'{rng.randrange(1, 366):03d}', 'tld': rng.choice(['com', 'de', 'io', 'fr', 'jp', 'com.br']),
        'ip': f'{rng.choice([81, 93, 145, 178, 203])}.{rng.randrange(256)}.{rng.randrange(1, 255)}.{rng.randrange(1, 255)}',
        'btc': base58check(b'\0' + blob(rng, 20)), 'd1': rng.choice('123456789'), 'd2': rng.choice('23456789'), 'd12': rng.choice('12'),
        'd26': rng.choice('23456'), 'd15': rng.choice('12345'), 'd19': rng.choice('0123456789'), 'fihk': rng.choice('0123456789ABCDEFHJKLMNPRSTUVWXY'),
    }
    if name in made:
        return made[name]
    if name == 'phone':
        return phone(rng, arg)
    if name == 'mrz':
        return mrz(rng)
    chars = {'cons': 'BCDFGLMNPRSTVZ', 'vin': 'ABCDEFGHJKLMNPRSTUVWXYZ0123456789'}.get(name) or ALPHABETS[name]
    return ''.join(rng.choice(chars) for _ in range(int(arg)))


def phone(rng, style):
    import phonenumbers as p
    while True:
        region = rng.choice(REGIONS)
        kind = rng.choice([p.PhoneNumberType.MOBILE, p.PhoneNumberType.FIXED_LINE])
        number = p.example_number_for_type(region, kind)
        if number is None:
            continue
        digits = list(str(number.national_number))
        for i in range(len(digits) - 5, len(digits)):
            digits[i] = rng.choice('0123456789')
        number.national_number = int(''.join(digits))
        if p.is_valid_number(number):
            return p.format_number(number, getattr(p.PhoneNumberFormat, style))


def mrz(rng):
    """A passport's two lines (ICAO 9303-4), with its check digits."""
    value = lambda c: 0 if c == '<' else int(c) if c.isdigit() else ord(c) - 55
    digit = lambda s: str(sum(value(c) * (7, 3, 1)[i % 3] for i, c in enumerate(s)) % 10)
    number = 'C' + text(rng, 'up36', 8)
    birth, expiry, personal = f'{rng.randrange(50, 99)}0{rng.randrange(1, 10)}1{rng.randrange(10)}', f'3{rng.randrange(10)}0{rng.randrange(1, 10)}15', '<' * 14
    first = ('P<UTO' + text(rng, 'up', 7) + '<<' + text(rng, 'up', 5)).ljust(44, '<')
    a, b, c, e = (s + digit(s) for s in (number, birth, expiry, personal))
    return first + '\n' + a + 'UTO' + b + 'F' + c + e + digit(a + b + c + e)


def holds(check, value):
    """Whether the number is one that its issuer could have given."""
    bare = re.sub(r'[\s.()/-]', '', value)
    weigh = lambda s, w: sum(int(c) * k for c, k in zip(s, w))
    ours = {
        'any': lambda: True, 'phone': lambda: True, 'btc': lambda: True, 'mrz': lambda: True, 'vin': lambda: True, 'lk-nic': lambda: True,
        'nino': lambda: True,
        'npi': lambda: ours['luhn-of']('80840' + bare), 'luhn': lambda: ours['luhn-of'](bare),
        'luhn-of': lambda s: sum(int(c) if i % 2 == 0 else sum(divmod(2 * int(c), 10)) for i, c in enumerate(reversed(s))) % 10 == 0,
        'es-nss': lambda: int(bare[:10]) % 97 == int(bare[10:]),
        'hu-ado': lambda: weigh(bare[:9], range(1, 10)) % 11 == int(bare[9]),
        'hu-taj': lambda: weigh(bare[:8], [3, 7] * 4) % 10 == int(bare[8]),
        'snils': lambda: int(bare[:9]) > 1001998 and weigh(bare[:9], range(9, 0, -1)) % 101 % 100 == int(bare[9:]),
        'hkid': lambda: (36 * 9 + (ord(bare[0]) - 55) * 8 + weigh(bare[1:7], range(7, 1, -1)) + int(bare[7])) % 11 == 0,
        'twid': lambda: (lambda n: (n // 10 + n % 10 * 9 + weigh(bare[1:9], range(8, 0, -1)) + int(bare[9])) % 10 == 0)(
            'ABCDEFGHJKLMNPQRSTUVXYWZIO'.index(bare[0]) + 10),
        'nric': lambda: 'JZIHGFEDCBA'[weigh(bare[1:8], [2, 7, 6, 5, 4, 3, 2]) % 11] == bare[8],
        'medicare': lambda: weigh(bare[:8], [1, 3, 7, 9] * 2) % 10 == int(bare[8]),
        'lv.pvm_person': lambda: (1101 - weigh(bare[:10], [1, 6, 3, 7, 9, 10, 5, 8, 4, 2])) % 11 == int(bare[10]),
    }
    if check in ours:
        return ours[check]()
    return importlib.import_module('stdnum.' + check).is_valid(value)


def fill(rng, check, template):
    """A value of the template for which the check holds."""
    parts = re.split(r'(\{[A-Za-z0-9]+(?::[A-Z0-9a-z]+)?\})', template)
    for _ in range(60000):
        value = ''
        for part in parts:
            if part.startswith('{'):
                name, _, arg = part[1:-1].partition(':')
                value += field(rng, name, arg)
            else:
                value += part
        if check in ('iban',):
            bare = re.sub(r'\s', '', value)
            rest = int(''.join(str(int(c, 36)) for c in bare[4:] + bare[:2] + '00'))
            tail, n, out = f'{98 - rest % 97:02d}', 0, ''
            for c in value:
                n += not c.isspace()
                out += tail[n - 3] if n in (3, 4) and not c.isspace() else c
            value = out
        if holds(check, value):
            return value
    raise SystemExit(f'no value for {check} {template}')
