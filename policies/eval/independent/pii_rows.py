from core import *
import importlib, phonenumbers, schwifty
from stdnum import luhn, iban, verhoeff
def V(mod):
    m = importlib.import_module('stdnum.' + mod)
    return m
CHECK = {}   # subtype -> validator
def brute(mod, gen, fmt=None):
    m = V(mod)
    def f():
        for _ in range(200000):
            v = gen()
            if m.is_valid(v):
                return fmt(m, v) if fmt else v
        raise SystemExit('no valid ' + mod)
    f.mod = mod
    return f
def d(): return datetime.date(R.randint(1945, 2006), R.randint(1, 12), R.randint(1, 28))
def ymd(): return d().strftime('%y%m%d')
def dmy(): return d().strftime('%d%m%y')
def mf(m, v): return m.format(v) if hasattr(m, 'format') and R.random() < .6 else v
P = lambda pat: (lambda: t(pat))
def seq(*fs): return lambda: ''.join(f() if callable(f) else t(f) for f in fs)
def de_idnr():
    # 11 digits, exactly one digit twice or three times
    ds = list('0123456789'); R.shuffle(ds); ds = ds[:9]; ds.append(R.choice(ds)); R.shuffle(ds); return ''.join(ds) + rs(1, 'd')
def cf():
    L = 'BCDFGLMNPRSTV'; A = 'AEIO'
    return (R.choice(L) + R.choice(L) + R.choice(L) + R.choice(L) + R.choice(A) + R.choice(L) + '%02d' % R.randint(40, 99) + R.choice('ABCDEHLMPRST') + '%02d' % R.choice([R.randint(1, 28), R.randint(41, 68)]) + R.choice(['H501', 'F205', 'L219', 'F839', 'A662', 'D612', 'G273']) + rs(1, 'U'))
def curp():
    return R.choice('BCDGLMR') + R.choice('AEIOU') + R.choice('BCDGLMR') + R.choice('BCDGLMR') + ymd() + R.choice('HM') + R.choice(['DF', 'JC', 'NL', 'PL', 'MC', 'GT']) + ''.join(R.choice('BCDFGLMNPRT') for _ in range(3)) + ('0' if 1 else '') + rs(1, 'd')
def cn(): 
    return R.choice(['110101', '310104', '440305', '330106', '510107', '420106']) + d().strftime('%Y%m%d') + '%03d' % R.randint(1, 999) + R.choice('0123456789X')
def nir():
    b = '%d%02d%02d%02d%03d%03d' % (R.randint(1, 2), R.randint(45, 99), R.randint(1, 12), R.choice([75, 69, 13, 33, 59, 44]), R.randint(1, 300), R.randint(1, 400))
    v = b + '%02d' % (97 - int(b) % 97)
    return v if R.random() < .4 else ' '.join([v[0], v[1:3], v[3:5], v[5:7], v[7:10], v[10:13], v[13:]])
def kvnr():
    L = R.choice(string.ascii_uppercase); b = rs(8, 'd'); s = 0
    for i, c in enumerate('%02d' % (ord(L) - 64) + b):
        x = int(c) * (1 if i % 2 == 0 else 2); s += x if x < 10 else x - 9
    return L + b + str(s % 10)
def rvnr():  # German pension number: area(2) ddmmyy letter serial(2) check
    b = R.choice(['02', '08', '12', '15', '53', '65']) + dmy() + R.choice(string.ascii_uppercase) + '%02d' % R.randint(0, 99)
    n = b[:8] + '%02d' % (ord(b[8]) - 64) + b[9:]
    s = sum(sum(map(int, str(int(c) * w))) for c, w in zip(n, [2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1]))
    return b + str(s % 10)
def nino():
    while 1:
        a = R.choice('ABCEGHJKLMNOPRSTWXYZ') + R.choice('ABCEGHJKLMNPRSTWXYZ')
        if a not in ('BG', 'GB', 'NK', 'KN', 'TN', 'NT', 'ZZ'): break
    x = rs(6, 'd'); s = R.choice('ABCD')
    return pick(a + x + s, '%s %s %s %s %s' % (a, x[:2], x[2:4], x[4:], s))
def ukdl():
    s = R.choice(['MORGA', 'SMITH', 'JONES', 'TAYLO', 'WILSO', 'BROWN', 'EVANS', 'LEE99']); x = d()
    return s + '%d%02d%02d%d' % (x.year // 10 % 10, x.month + R.choice([0, 50]), x.day, x.year % 10) + R.choice('ABCDEJKMPRS') + R.choice('9ABDEJKM') + rs(1, 'd') + rs(2, 'U')
def mbi():
    c = 'ACDEFGHJKMNPQRTUVWXY'; a = lambda: R.choice(c); an = lambda: R.choice(c + '0123456789'); n = lambda: rs(1, 'd')
    v = rs(1, '9') + a() + an() + n() + a() + an() + n() + a() + a() + n() + n()
    return pick(v, v[:4] + '-' + v[4:7] + '-' + v[7:])
def npi():
    b = R.choice('12') + rs(8, 'd'); return b + luhn.calc_check_digit('80840' + b)
def dea():
    x = rs(6, 'd'); s = sum(map(int, x[::2])) + 2 * sum(map(int, x[1::2])); return R.choice('ABFM') + R.choice(string.ascii_uppercase) + x + str(s % 10)
def aumed():
    b = R.choice('23456') + rs(7, 'd'); s = sum(int(c) * w for c, w in zip(b, [1, 3, 7, 9, 1, 3, 7, 9])) % 10; v = b + str(s) + R.choice('1234')
    return pick(v, '%s %s %s' % (v[:4], v[4:9], v[9:]))
def clabe():
    b = R.choice(['002', '012', '014', '021', '072']) + rs(14, 'd'); s = sum(int(c) * w % 10 for c, w in zip(b, [3, 7, 1] * 6)); return b + str((10 - s % 10) % 10)
def mrzc(s):
    v = lambda c: 0 if c == '<' else int(c) if c.isdigit() else ord(c) - 55
    return str(sum(v(c) * w for c, w in zip(s, [7, 3, 1] * 20)) % 10)
def mrz():
    cc = R.choice(['UTO', 'FRA', 'ESP', 'NLD', 'SWE', 'CAN', 'POL', 'D<<'])
    l1 = ('P<' + cc + F.last_name().upper().replace("'", '') + '<<' + F.first_name().upper()).ljust(44, '<')[:44]
    num = rs(9, 'u'); dob = ymd(); ex = '%02d%02d%02d' % (R.randint(26, 35), R.randint(1, 12), R.randint(1, 28)); per = '<' * 14
    a, b, c, e = num + mrzc(num), dob + mrzc(dob), ex + mrzc(ex), per + pick('0', '<')
    return l1 + '\n' + a + cc + b + R.choice('MF') + c + e + mrzc(a + b + c + e)
def mrz1():
    num = rs(9, 'u'); dob = ymd(); ex = '31%02d15' % R.randint(1, 12); cc = R.choice(['BEL', 'NLD', 'PRT', 'ROU', 'HRV'])
    l1 = 'ID' + cc + num + mrzc(num) + '<' * 15; l2 = dob + mrzc(dob) + R.choice('MF') + ex + mrzc(ex) + cc + '<' * 11
    l2 += mrzc(l1[5:] + l2[:7] + l2[8:15] + l2[18:])
    return l1 + '\n' + l2 + '\n' + (F.last_name().upper() + '<<' + F.first_name().upper()).ljust(30, '<')[:30]
def card(): 
    p, n = R.choice([('4', 16), ('51', 16), ('55', 16), ('2221', 16), ('34', 15), ('37', 15), ('6011', 16), ('36', 14), ('3530', 16), ('62', 16), ('5018', 16)])
    b = p + rs(n - len(p) - 1, 'd'); v = b + luhn.calc_check_digit(b)
    if n == 15: g = [v[:4], v[4:10], v[10:]]
    elif n == 14: g = [v[:4], v[4:10], v[10:]]
    else: g = [v[i:i + 4] for i in range(0, 16, 4)]
    return pick(v, ' '.join(g), '-'.join(g), ' '.join(g))
IBC = 'DE FR ES IT NL BE AT CH PL PT SE NO DK FI IE GB CZ SK HU RO GR BG HR LT LV EE LU SI TR AE SA IL CY MT IS UA KZ GE MD'.split()
def ibn(cc=None):
    while 1:
        try:
            v = str(schwifty.IBAN.random(country_code=cc or R.choice(IBC), random=R)); break
        except Exception: continue
    return pick(v, iban.format(v), iban.format(v))
PHC = 'US GB DE FR ES IT NL BE AT CH PL PT SE NO DK FI IE CZ HU RO GR TR RU UA IN CN JP KR BR MX AR CL CO ZA NG KE EG SA AE IL AU NZ SG MY TH VN ID PH PK CA'.split()
def phone(cc, intl=True):
    for _ in range(5000):
        ex = phonenumbers.example_number_for_type(cc, phonenumbers.PhoneNumberType.MOBILE); s = str(ex.national_number)
        k = R.choice([4, 5, 6]); n = phonenumbers.PhoneNumber(country_code=ex.country_code, national_number=int(s[:-k] + rs(k, 'd')), italian_leading_zero=ex.italian_leading_zero)
        if cc in ('US', 'CA'): n.national_number = int(R.choice({'US': ['212', '415', '312', '206', '713'], 'CA': ['416', '604', '514']}[cc]) + R.choice('23456789') + rs(6, 'd'))
        if phonenumbers.is_valid_number(n) and '555' not in str(n.national_number)[3:6]:
            f = phonenumbers.PhoneNumberFormat
            return phonenumbers.format_number(n, R.choice([f.INTERNATIONAL, f.E164, f.INTERNATIONAL]) if intl else f.NATIONAL)
FK = {}
def fk(l):
    if l not in FK: FK[l] = Faker(l)
    return FK[l]
def email():
    dom = pick('gmail.com', 'outlook.com', 'gmx.de', 'orange.fr', 'libero.it', 'wp.pl', 'seznam.cz', 'yahoo.co.jp', 'naver.com', 'uol.com.br', 'proton.me', 'icloud.com', 'mail.ru', 'telia.se', 'ziggo.nl', 'hotmail.es', word() + '.io')
    return pick(F.user_name(), F.first_name().lower() + '.' + F.last_name().lower(), F.first_name().lower() + str(R.randint(60, 99)), F.last_name().lower() + '+' + word()) + '@' + dom
def btc():
    import base58
    from sec_types import bech
    return base58.b58encode_check(pick(b'\x00', b'\x05') + rb(20)).decode()
def ip(): 
    while 1:
        v = F.ipv4_public()
        if not v.startswith(('192.0.', '198.51', '203.0')): return v
# subtype | cc | labels ; context words native then english | maker
def hkid():
    L = R.choice(string.ascii_uppercase); b = rs(6, 'd'); s = 36 * 9 + (ord(L) - 55) * 8 + sum(int(c) * w for c, w in zip(b, range(7, 1, -1))); c = (11 - s % 11) % 11
    return L + b + '(%s)' % ('A' if c == 10 else c)
def nric():
    p = R.choice('STFG'); b = rs(7, 'd'); s = sum(int(c) * w for c, w in zip(b, [2, 7, 6, 5, 4, 3, 2])) + (4 if p in 'TG' else 0)
    return p + b + ('JZIHGFEDCBA' if p in 'ST' else 'XWUTRQPNMLK')[s % 11]
def ssn():
    return t('%03d-%02d-%04d' % (R.choice([R.randint(1, 665), R.randint(667, 899)]), R.randint(1, 99), R.randint(1, 9999)))
def routing(): return brute('us.rtn', lambda: R.choice(['021', '026', '031', '044', '071', '111', '121', '322']) + rs(6, 'd'))()
def inpass(): return R.choice('JKLMNPRSTZ') + rs(1, '9') + rs(6, 'd')
def sp(v, *cut):
    out, i = [], 0
    for c in cut: out.append(v[i:i + c]); i += c
    out.append(v[i:]); return ' '.join(x for x in out if x)
X = []
def p(sub, cc, labels, g): X.append((sub, cc, labels.split(';'), g))
p('us_ssn', 'US', 'SSN;Social Security number;social security no.', ssn)
p('us_itin', 'US', 'ITIN;Individual Taxpayer Identification Number', brute('us.itin', P('9{2:d}-{2:d}-{4:d}')))
p('us_ein', 'US', 'EIN;Employer Identification Number', brute('us.ein', P('{2:d}-{7:d}')))
p('us_mbi', 'US', 'Medicare ID;MBI;Medicare Beneficiary Identifier', mbi)
p('us_npi', 'US', 'NPI;National Provider Identifier', npi)
p('us_dea', 'US', 'DEA number;DEA registration', dea)
p('us_routing', 'US', 'ABA routing number;routing number', routing)
p('us_passport', 'US', 'US passport number;passport no.', P('{9:d}'))
p('us_driver_license', 'US', "California driver's license;driver license number;DL#", lambda: R.choice('ABCDEFY') + rs(7, 'd'))
p('ca_sin', 'CA', 'SIN;Social Insurance Number;NAS;numéro d\'assurance sociale', brute('ca.sin', P('{9:d}'), mf))
p('uk_nino', 'GB', 'NI number;National Insurance number;NINO', nino)
p('uk_nhs', 'GB', 'NHS number;NHS no', brute('gb.nhs', P('{10:d}'), mf))
p('uk_utr', 'GB', 'UTR;Unique Taxpayer Reference', brute('gb.utr', P('{10:d}')))
p('uk_driving_licence', 'GB', 'driving licence number;driver number', ukdl)
p('uk_bank', 'GB', 'sort code and account number;bank details', lambda: t('{2:d}-{2:d}-{2:d}') + ' ' + rs(8, 'd'))
p('ie_pps', 'IE', 'PPS number;PPSN', brute('ie.pps', P('{7:d}{1:U}')))
p('de_steuer_id', 'DE', 'Steuer-ID;Steueridentifikationsnummer;IdNr.', brute('de.idnr', de_idnr, mf))
p('de_kvnr', 'DE', 'Krankenversichertennummer;KVNR;Versichertennummer', kvnr)
p('de_rvnr', 'DE', 'Rentenversicherungsnummer;Sozialversicherungsnummer;SV-Nummer', rvnr)
p('de_ust_id', 'DE', 'USt-IdNr.;Umsatzsteuer-ID', lambda: 'DE' + brute('de.vat', P('{9:d}'))())
p('at_svnr', 'AT', 'Sozialversicherungsnummer;SVNR;SV-Nr', brute('at.vnr', seq('{4:d}', dmy), mf))
p('ch_ahv', 'CH', 'AHV-Nummer;numéro AVS;numero AVS', brute('ch.ssn', P('756{10:d}'), lambda m, v: m.format(v)))
p('fr_nir', 'FR', 'numéro de sécurité sociale;NIR;n° de sécu', nir)
p('fr_nif', 'FR', 'numéro fiscal;SPI', brute('fr.nif', P('{1:9}{12:d}'), mf))
p('fr_siren', 'FR', 'SIREN', brute('fr.siren', P('{9:d}'), mf))
p('be_nn', 'BE', 'rijksregisternummer;numéro national;numéro de registre national', brute('be.nn', seq(ymd, '{5:d}'), mf))
p('nl_bsn', 'NL', 'BSN;burgerservicenummer', brute('nl.bsn', P('{9:d}'), mf))
p('es_dni', 'ES', 'DNI;NIF;documento nacional de identidad', brute('es.dni', P('{8:d}{1:U}')))
p('es_nie', 'ES', 'NIE;número de identidad de extranjero', brute('es.nie', lambda: R.choice('XYZ') + t('{7:d}{1:U}')))
p('es_cif', 'ES', 'CIF', brute('es.cif', lambda: R.choice('ABEH') + t('{8:d}')))
p('es_ccc', 'ES', 'cuenta corriente;CCC;número de cuenta', brute('es.ccc', P('{20:d}')))
p('pt_nif', 'PT', 'NIF;número de contribuinte', brute('pt.nif', P('2{8:d}'), mf))
p('pt_cc', 'PT', 'cartão de cidadão;número do CC', brute('pt.cc', P('{8:d} {1:d} {2:u}{1:d}'), lambda m, v: m.format(v)))
p('it_codice_fiscale', 'IT', 'codice fiscale;C.F.;CF', brute('it.codicefiscale', cf))
p('it_partita_iva', 'IT', 'partita IVA;P.IVA', brute('it.iva', P('0{10:d}')))
p('gr_amka', 'GR', 'ΑΜΚΑ;AMKA', brute('gr.amka', seq(dmy, '{5:d}')))
p('gr_afm', 'GR', 'ΑΦΜ;AFM', brute('gr.vat', P('{9:d}')))
p('se_personnummer', 'SE', 'personnummer;personnr', brute('se.personnummer', lambda: (pick(ymd(), d().strftime('%Y%m%d')) + '-' + rs(4, 'd'))))
p('no_fodselsnummer', 'NO', 'fødselsnummer;personnummer;fnr', brute('no.fodselsnummer', seq(dmy, '{5:d}'), mf))
p('dk_cpr', 'DK', 'CPR-nummer;CPR', brute('dk.cpr', seq(dmy, '{4:d}'), lambda m, v: m.format(v)))
p('fi_hetu', 'FI', 'henkilötunnus;hetu', brute('fi.hetu', lambda: dmy() + '-' + rs(3, 'd') + R.choice('0123456789ABCDEFHJKLMNPRSTUVWXY')))
p('is_kennitala', 'IS', 'kennitala', brute('is_.kennitala', seq(dmy, '{3:d}', pick('9', '9')), lambda m, v: m.format(v)))
p('pl_pesel', 'PL', 'PESEL;numer PESEL', brute('pl.pesel', seq(ymd, '{5:d}')))
p('pl_nip', 'PL', 'NIP', brute('pl.nip', P('{10:d}'), mf))
p('cz_rc', 'CZ', 'rodné číslo;RČ', brute('cz.rc', seq(ymd, '{4:d}'), lambda m, v: m.format(v)))
p('sk_rc', 'SK', 'rodné číslo', brute('sk.rc', seq(ymd, '{4:d}'), lambda m, v: m.format(v)))
p('hu_taj', 'HU', 'TAJ szám;TAJ', lambda: (lambda b: sp(b + str(sum(int(c) * (3 if i % 2 == 0 else 7) for i, c in enumerate(b)) % 10), 3, 3))(rs(8, 'd')))
p('ro_cnp', 'RO', 'CNP;cod numeric personal', brute('ro.cnp', lambda: R.choice('12') + ymd() + '%02d' % R.randint(1, 40) + rs(4, 'd')))
p('bg_egn', 'BG', 'ЕГН;EGN', brute('bg.egn', seq(ymd, '{4:d}')))
p('hr_oib', 'HR', 'OIB;osobni identifikacijski broj', brute('hr.oib', P('{11:d}')))
p('si_emso', 'SI', 'EMŠO', brute('si.emso', lambda: d().strftime('%d%m') + d().strftime('%Y')[1:] + '50' + rs(4, 'd')))
p('rs_jmbg', 'RS', 'JMBG;ЈМБГ', brute('si.emso', lambda: d().strftime('%d%m') + d().strftime('%Y')[1:] + '71' + rs(4, 'd')))
p('lt_asmens', 'LT', 'asmens kodas', brute('lt.asmens', lambda: R.choice('34') + ymd() + rs(4, 'd')))
p('lv_pk', 'LV', 'personas kods', brute('lv.pvn', seq(dmy, '{5:d}'), lambda m, v: v[:6] + '-' + v[6:]))
p('ee_ik', 'EE', 'isikukood', brute('ee.ik', lambda: R.choice('34') + ymd() + rs(4, 'd')))
p('ua_rntrc', 'UA', 'РНОКПП;ІПН', brute('ua.rntrc', lambda: R.choice('23') + rs(9, 'd')))
p('ru_inn', 'RU', 'ИНН;INN', brute('ru.inn', P('77{10:d}')))
p('ru_snils', 'RU', 'СНИЛС;SNILS', lambda: (lambda b: '%s-%s-%s %02d' % (b[:3], b[3:6], b[6:], (lambda s: s % 101 % 100)(sum(int(c) * (9 - i) for i, c in enumerate(b)))))(rs(1, '9') + rs(8, 'd')))
p('ru_passport', 'RU', 'паспорт серия и номер;паспорт', P('45 {2:d} {6:d}'))
p('tr_tckn', 'TR', 'T.C. Kimlik No;TCKN;TC kimlik numarası', brute('tr.tckimlik', P('{1:9}{10:d}')))
p('il_id', 'IL', 'תעודת זהות;ת.ז.;Teudat Zehut', brute('il.idnr', P('{9:d}')))
p('za_id', 'ZA', 'SA ID number;ID number', brute('za.idnr', seq(ymd, '{4:d}08{1:d}')))
p('in_aadhaar', 'IN', 'Aadhaar;आधार संख्या;Aadhaar number', brute('in_.aadhaar', P('{1:9}{11:d}'), mf))
p('in_pan', 'IN', 'PAN;Permanent Account Number;पैन', brute('in_.pan', lambda: rs(3, 'U') + 'P' + t('{1:U}{4:d}{1:U}')))
p('in_epic', 'IN', 'Voter ID;EPIC number', brute('in_.epic', P('{3:U}{7:d}')))
p('in_gstin', 'IN', 'GSTIN', brute('in_.gstin', lambda: '27' + rs(3, 'U') + 'C' + t('{1:U}{4:d}{1:U}1Z{1:u}')))
p('in_passport', 'IN', 'Indian passport;passport number', inpass)
p('pk_cnic', 'PK', 'CNIC;شناختی کارڈ', brute('pk.cnic', lambda: R.choice('34') + t('{12:d}'), lambda m, v: m.format(v)))
p('cn_resident_id', 'CN', '身份证号;公民身份号码;居民身份证', brute('cn.ric', cn))
p('tw_id', 'TW', '身分證字號;身分證號碼', lambda: next(v for v in iter(lambda: R.choice('ABDEFH') + R.choice('12') + rs(8, 'd'), 0) if (lambda n: (n // 10 + n % 10 * 9 + sum(int(c) * w for c, w in zip(v[1:], [8, 7, 6, 5, 4, 3, 2, 1, 1]))) % 10 == 0)({'A': 10, 'B': 11, 'D': 13, 'E': 14, 'F': 15, 'H': 17}[v[0]])))
p('jp_my_number', 'JP', 'マイナンバー;個人番号', brute('jp.in_', P('{12:d}'), mf))
p('kr_rrn', 'KR', '주민등록번호;RRN', brute('kr.rrn', lambda: d().replace(year=R.randint(1950, 1999)).strftime('%y%m%d') + R.choice('12') + '0' + rs(5, 'd'), lambda m, v: m.format(v)))
p('hk_id', 'HK', 'HKID;香港身份證號碼', hkid)
p('sg_nric', 'SG', 'NRIC;FIN;NRIC no.', nric)
p('my_nric', 'MY', 'MyKad;no. kad pengenalan;IC number', brute('my.nric', lambda: ymd() + '14' + rs(4, 'd'), lambda m, v: m.format(v)))
p('id_nik', 'ID', 'NIK;nomor KTP', lambda: R.choice(['317106', '357801', '327301']) + dmy() + '%04d' % R.randint(1, 40))
p('th_pin', 'TH', 'เลขประจำตัวประชาชน;บัตรประชาชน', brute('th.pin', P('{1:9}{12:d}'), mf))
p('vn_cccd', 'VN', 'CCCD;căn cước công dân;số CCCD', lambda: R.choice(['001', '079', '048', '031']) + R.choice('01') + '%02d' % R.randint(50, 99) + rs(6, 'd'))
p('ph_tin', 'PH', 'TIN;BIR TIN', P('{3:d}-{3:d}-{3:d}-000'))
p('au_tfn', 'AU', 'TFN;tax file number', brute('au.tfn', P('{9:d}'), mf))
p('au_medicare', 'AU', 'Medicare card;Medicare no.', aumed)
p('au_abn', 'AU', 'ABN', brute('au.abn', P('{11:d}'), mf))
p('nz_ird', 'NZ', 'IRD number;IRD', brute('nz.ird', P('1{8:d}'), mf))
p('br_cpf', 'BR', 'CPF;CPF do titular', brute('br.cpf', P('{11:d}'), mf))
p('br_cnpj', 'BR', 'CNPJ', brute('br.cnpj', lambda: rs(8, 'd') + '0001' + rs(2, 'd'), mf))
p('ar_cuit', 'AR', 'CUIT;CUIL', brute('ar.cuit', lambda: R.choice(['20', '27', '23']) + rs(9, 'd'), mf))
p('ar_dni', 'AR', 'DNI;documento', lambda: '%d.%s.%s' % (R.randint(12, 45), rs(3, 'd'), rs(3, 'd')))
p('cl_rut', 'CL', 'RUT;RUN', brute('cl.rut', lambda: rs(1, '9') + rs(7, 'd') + R.choice('0123456789K'), mf))
p('co_nit', 'CO', 'NIT', brute('co.nit', P('9{9:d}'), mf))
p('mx_curp', 'MX', 'CURP', brute('mx.curp', curp))
p('mx_rfc', 'MX', 'RFC', brute('mx.rfc', lambda: R.choice('BCDGLMR') + R.choice('AEIOU') + R.choice('BCDGLMR') + R.choice('BCDGLMR') + ymd() + rs(2, 'u') + R.choice('0123456789A')))
p('mx_clabe', 'MX', 'CLABE;CLABE interbancaria', clabe)
p('pe_ruc', 'PE', 'RUC', brute('pe.ruc', P('10{9:d}')))
p('ec_ci', 'EC', 'cédula;cédula de identidad', brute('ec.ci', lambda: '%02d' % R.randint(1, 24) + R.choice('012345') + rs(7, 'd')))
p('uy_rut', 'UY', 'RUT', brute('uy.rut', lambda: '21' + rs(6, 'd') + '001' + rs(1, 'd')))
p('ve_rif', 'VE', 'RIF', brute('ve.rif', lambda: R.choice('VJ') + rs(9, 'd'), mf))
p('do_cedula', 'DO', 'cédula', brute('do.cedula', P('001{8:d}'), mf))
p('gt_nit', 'GT', 'NIT', brute('gt.nit', P('{8:d}'), mf))
p('eg_tn', 'EG', 'الرقم القومي;National ID', lambda: '2' + ymd() + R.choice(['01', '02', '12', '21']) + rs(5, 'd'))
p('sa_id', 'SA', 'رقم الهوية;National ID', lambda: (lambda b: b + luhn.calc_check_digit(b))(R.choice('12') + rs(8, 'd')))
p('ae_eid', 'AE', 'Emirates ID;رقم الهوية الإماراتية', lambda: (lambda b: '%s-%s-%s-%s' % (b[:3], b[3:7], b[7:14], luhn.calc_check_digit(b)))('784' + str(R.randint(1955, 2003)) + rs(7, 'd')))
p('ke_pin', 'KE', 'KRA PIN', brute('ke.pin', lambda: 'A' + rs(9, 'd') + rs(1, 'U')))
p('ng_nin', 'NG', 'NIN;National Identification Number', P('{1:9}{10:d}'))
p('credit_card', '*', 'card number;credit card;Kreditkarte;carte bancaire;tarjeta;カード番号;card no', card)
p('passport_mrz', '*', 'MRZ;passport scan;machine readable zone', mrz)
p('id_mrz', '*', 'MRZ;ID card scan', mrz1)
p('email', '*', 'email;e-mail;Kontakt;correo;courriel;メール', email)
p('ipv4', '*', 'client IP;IP address;remote_addr', ip)
p('ipv6', '*', 'client IP;IPv6 address', lambda: '2a0' + rs(1, 'd') + ':' + ':'.join(rs(4, 'h') for _ in range(7)))
p('btc_address', '*', 'bitcoin address;BTC wallet', btc)
p('date_of_birth', '*', 'date of birth;DOB;Geburtsdatum;date de naissance;fecha de nacimiento;data di nascita;生年月日;дата рождения;födelsedatum', lambda: d().strftime(pick('%Y-%m-%d', '%d.%m.%Y', '%d/%m/%Y', '%B %d, %Y')))
p('vin', '*', 'VIN;vehicle identification number;Fahrgestellnummer', lambda: None)
p('imei', '*', 'IMEI', brute('imei', P('35{13:d}')))
def vin():
    al = 'ABCDEFGHJKLMNPRSTUVWXYZ0123456789'; tr = dict(zip('ABCDEFGHJKLMNPRSTUVWXYZ', [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 7, 9, 2, 3, 4, 5, 6, 7, 8, 9])); w = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2]
    v = list(R.choice(['1HG', '1FT', '2T1', '3VW', '5YJ']) + ''.join(R.choice(al) for _ in range(5)) + '0' + R.choice('KLMNPR') + R.choice('ABCFG') + rs(6, 'd'))
    s = sum((tr.get(c) or int(c) if c not in tr else tr[c]) * x for c, x in zip(v, w)) % 11; v[8] = 'X' if s == 10 else str(s); return ''.join(v)
X = [(a, b, c, vin if a == 'vin' else g) for a, b, c, g in X]
PHL = {'DE': 'Tel.;Handy', 'FR': 'téléphone;portable', 'ES': 'teléfono;móvil', 'IT': 'cellulare;telefono', 'NL': 'telefoon;mobiel', 'PL': 'telefon;nr tel.', 'PT': 'telemóvel;telefone', 'SE': 'mobil;telefon', 'NO': 'mobil;tlf', 'DK': 'mobil;tlf.', 'FI': 'puhelin;puh.', 'CZ': 'telefon;mobil', 'HU': 'telefonszám', 'RO': 'telefon', 'GR': 'τηλέφωνο;κινητό', 'TR': 'telefon;cep', 'RU': 'телефон;тел.', 'UA': 'телефон', 'CN': '手机号;电话', 'JP': '電話番号;携帯', 'KR': '전화번호;휴대폰', 'BR': 'telefone;celular', 'MX': 'teléfono;celular', 'AR': 'teléfono;celular', 'CL': 'teléfono;celular', 'CO': 'teléfono;celular', 'SA': 'رقم الجوال', 'AE': 'رقم الهاتف', 'EG': 'رقم الموبايل', 'IL': 'טלפון;נייד', 'TH': 'เบอร์โทร;โทรศัพท์', 'VN': 'số điện thoại;SĐT', 'ID': 'nomor HP;telepon', 'IN': 'mobile;फ़ोन'}
LOC = {'DE': 'de_DE', 'AT': 'de_AT', 'CH': 'de_CH', 'FR': 'fr_FR', 'ES': 'es_ES', 'IT': 'it_IT', 'NL': 'nl_NL', 'PL': 'pl_PL', 'PT': 'pt_PT', 'SE': 'sv_SE', 'NO': 'no_NO', 'DK': 'da_DK', 'FI': 'fi_FI', 'CZ': 'cs_CZ', 'SK': 'sk_SK', 'HU': 'hu_HU', 'RO': 'ro_RO', 'GR': 'el_GR', 'TR': 'tr_TR', 'RU': 'ru_RU', 'UA': 'uk_UA', 'BG': 'bg_BG', 'CN': 'zh_CN', 'TW': 'zh_TW', 'HK': 'zh_TW', 'JP': 'ja_JP', 'KR': 'ko_KR', 'BR': 'pt_BR', 'MX': 'es_MX', 'AR': 'es_AR', 'CL': 'es_CL', 'CO': 'es_CO', 'IL': 'he_IL', 'IN': 'en_IN', 'TH': 'th_TH', 'VN': 'vi_VN', 'ID': 'id_ID', 'GB': 'en_GB', 'IE': 'en_IE', 'AU': 'en_AU', 'NZ': 'en_NZ', 'HR': 'hr_HR', 'SI': 'sl_SI', 'LT': 'lt_LT', 'LV': 'lv_LV', 'EE': 'et_EE', 'SA': 'ar_SA', 'EG': 'ar_EG', 'AE': 'ar_AE', 'BE': 'nl_BE', 'CA': 'en_CA'}
def name(cc): return fk(LOC.get(cc, 'en_US')).name()
LANG = {'DE': 'de', 'AT': 'de', 'CH': 'de', 'FR': 'fr', 'BE': 'fr', 'ES': 'es', 'MX': 'es', 'AR': 'es', 'CL': 'es', 'CO': 'es', 'PE': 'es', 'EC': 'es', 'UY': 'es', 'VE': 'es', 'DO': 'es', 'GT': 'es', 'IT': 'it', 'NL': 'nl', 'PL': 'pl', 'PT': 'pt', 'BR': 'pt', 'SE': 'sv', 'NO': 'no', 'DK': 'da', 'FI': 'fi', 'CZ': 'cs', 'SK': 'cs', 'HU': 'hu', 'RO': 'ro', 'GR': 'el', 'TR': 'tr', 'RU': 'ru', 'UA': 'uk', 'BG': 'bg', 'HR': 'hr', 'SI': 'sl', 'RS': 'hr', 'LT': 'lt', 'LV': 'lv', 'EE': 'et', 'IL': 'he', 'IN': 'en', 'PK': 'en', 'CN': 'zh', 'TW': 'zht', 'HK': 'zht', 'JP': 'ja', 'KR': 'ko', 'TH': 'th', 'VN': 'vi', 'ID': 'id', 'MY': 'id', 'SA': 'ar', 'EG': 'ar', 'AE': 'ar', 'IS': 'is'}
SENT = {'de': '''Sehr geehrte Damen und Herren, meine {l} lautet {v}. Mit freundlichen Grüßen, {n}
Antragsteller: {n}, {l}: {v}
Bitte tragen Sie die {l} {v} in das Formular ein.
Kundin {n} hat angerufen und die {l} {v} durchgegeben
Patient/in {n} ({l} {v}) wurde aufgenommen.''', 'fr': '''Bonjour, mon {l} est le {v}. Cordialement, {n}
Dossier de {n} - {l} : {v}
Veuillez mettre à jour le {l} : {v}
L'assuré {n} nous a communiqué son {l} ({v}).''', 'es': '''Hola, mi {l} es {v}. Gracias, {n}
Titular: {n}. {l}: {v}
Por favor, registre el {l} {v} en el sistema
El cliente {n}, con {l} {v}, solicita la baja.
Datos del paciente: {n}, {l} {v}
La señora {n} aportó su {l} nº {v} en ventanilla
Factura a nombre de {n}, {l} {v}
Se adjunta copia. {l}: {v}. Firma: {n}
Buenas tardes, necesito cambiar mi {l}, el correcto es {v}''', 'it': '''Buongiorno, il mio {l} è {v}. Saluti, {n}
Il sottoscritto {n}, {l} {v}, chiede il rimborso.
Paziente: {n} - {l}: {v}''', 'nl': '''Geachte heer/mevrouw, mijn {l} is {v}. Groet, {n}
Cliënt {n}, {l} {v}, graag bellen.''', 'pl': '''Dzień dobry, mój {l} to {v}. Pozdrawiam, {n}
Wnioskodawca: {n}, {l}: {v}
Proszę poprawić {l} na {v}''', 'pt': '''Olá, o meu {l} é {v}. Obrigado, {n}
Titular: {n} | {l}: {v}
Favor cadastrar o {l} {v} no sistema.
O paciente {n}, {l} {v}, compareceu à consulta''', 'sv': '''Hej, mitt {l} är {v}. Mvh {n}
Kund {n}, {l} {v}, vill avsluta avtalet''', 'no': '''Hei, mitt {l} er {v}. Hilsen {n}
Pasient {n}, {l}: {v}''', 'da': '''Hej, mit {l} er {v}. Venlig hilsen {n}
Patienten {n} med {l} {v} er indlagt''', 'fi': '''Hei, {l} on {v}. Terveisin {n}
Asiakas {n}, {l}: {v}''', 'cs': '''Dobrý den, moje {l} je {v}. S pozdravem {n}
Žadatel {n}, {l}: {v}''', 'hu': '''Jó napot, a {l} {v}. Üdvözlettel, {n}
Ügyfél: {n}, {l}: {v}''', 'ro': '''Bună ziua, {l} meu este {v}. Mulțumesc, {n}
Solicitant: {n}, {l}: {v}''', 'el': '''Καλησπέρα, το {l} μου είναι {v}. {n}
Αιτών: {n}, {l}: {v}''', 'tr': '''Merhaba, {l} {v}. Saygılarımla, {n}
Başvuran: {n}, {l}: {v}''', 'ru': '''Здравствуйте, мой {l}: {v}. С уважением, {n}
Заявитель {n}, {l} {v}
Прошу внести {l} {v} в договор''', 'uk': '''Добрий день, мій {l} {v}. {n}
Заявник: {n}, {l}: {v}''', 'bg': '''Здравейте, моето {l} е {v}. {n}
Клиент: {n}, {l} {v}''', 'hr': '''Poštovani, moj {l} je {v}. Srdačan pozdrav, {n}
Stranka {n}, {l}: {v}''', 'sl': '''Pozdravljeni, moj {l} je {v}. {n}
Stranka: {n}, {l} {v}''', 'lt': '''Sveiki, mano {l} {v}. {n}
Klientas: {n}, {l}: {v}''', 'lv': '''Labdien, mans {l} ir {v}. {n}
Klients {n}, {l}: {v}''', 'et': '''Tere, minu {l} on {v}. {n}
Klient: {n}, {l}: {v}''', 'he': '''שלום, {l} שלי: {v}. תודה, {n}
לקוח: {n}, {l} {v}''', 'zh': '''您好,我的{l}是{v}。{n}
申请人:{n},{l}:{v}
请核对客户{l}{v}是否正确''', 'zht': '''您好,我的{l}是{v},謝謝。{n}
申請人:{n} {l}:{v}
請確認{l} {v} 是否正確''', 'ja': '''お世話になっております。{n}です。{l}は{v}です。
申請者:{n} {l}:{v}
{l} {v} で登録をお願いします''', 'ko': '''안녕하세요, {n}입니다. {l}는 {v}입니다.
신청인: {n}, {l}: {v}
{l} {v} 확인 부탁드립니다''', 'th': '''สวัสดีค่ะ {l} {v} ค่ะ {n}
ผู้สมัคร: {n} {l}: {v}''', 'vi': '''Xin chào, {l} của tôi là {v}. {n}
Khách hàng: {n}, {l}: {v}''', 'id': '''Selamat siang, {l} saya {v}. {n}
Pemohon: {n}, {l}: {v}''', 'ar': '''مرحبا، {l} الخاص بي هو {v}. {n}
مقدم الطلب: {n}، {l}: {v}
يرجى تحديث {l} إلى {v}''', 'is': '''Góðan dag, {l} mín er {v}. {n}''',
'en': r'''Hi, I am {n} and my {l} is {v}. Could you update the account?
Applicant {n} provided {l} {v} during the call.
Please add {l} {v} to the file of {n}.
Patient: {n}\n{l}: {v}\nAllergies: none
Dear HR, for payroll you will need my {l}: {v}. Thanks, {n}
> {n} wrote:\n> my {l} is {v}
Employee record - {n} - {l} {v} - start {m}
I can confirm the {l} ({v}) matches what we have on file for {n}.
The form was rejected because {l} {v} was already registered.
agent: may I have your {l}?\ncaller: sure, it's {v}
New hire packet: {n}, {l} {v}, start date Monday
Guest {n} checked in with {l} {v}
KYC result for {n}: {l} {v} verified
[{m} 3] {n}: forgot to say, {l} is {v}
Lost item report by {n}; reachable under {l} {v}
Refund to {n}; {l}: {v}
Invoice recipient: {n}, {l}: {v}, net 30
Background check order #{i}: {n}, {l} {v}
The visitor log shows {n} with {l} {v} at 14:05.
Voicemail: "this is {n}, my {l} is {v}, call me back"
Lead {i}: {n} / {l} {v} / interested
Tenant {n} - {l} {v} - flat {i}
OCR page {i}: NAME {n}   {l} {v}   SIGNED
Scanned form, low quality: "Narne: {n}  {l}: {v}  Sigmature: x"
Claim {i} was filed by {n} ({l} {v}).
student {n} enrolled with {l} {v}
Please do not publish: {n}, {l} {v}.
Signature block: {n} | {l}: {v}
Reminder: {l} for {n} is {v}
Could not match {l} {v} to any customer.
Duplicate customers found: {n} and another with the same {l} {v}
Delivery note for {n}. {l}: {v}. Ring twice.
GDPR request {i}: delete everything about {l} {v}
Support summary: user verified by {l} {v}, password reset.
Two records share {l} {v}; merge?
Membership form. {l}: {v}. Name: {n}.
Background: our driver {n}, {l} {v}, had an accident in {m}.
Insurance card of {n} shows {l} {v}
Emergency contact sheet - {n} - {l} {v}'''}
SENT = {k: [x.replace('\\n', '\n') for x in v.split('\n')] for k, v in SENT.items()}
def keyname(l):
    return re.sub(r'[^\w]+', '_', l.lower()).strip('_')
SH = [
 lambda n, l, v: 'name,%s,city\n"%s",%s,%s\n' % (keyname(l), n, v, F.city()),
 lambda n, l, v: 'id;name;%s\n%d;%s;%s\n' % (l, R.randint(1, 9999), n, v),
 lambda n, l, v: 'id\tfull_name\t%s\n%d\t%s\t%s' % (keyname(l), R.randint(1, 9999), n, v),
 lambda n, l, v: J({'name': n, keyname(l): v, 'tier': R.randint(1, 4)}),
 lambda n, l, v: J({'customer': {'full_name': n, 'ids': [{'type': l, 'value': v}]}}, indent=2),
 lambda n, l, v: J({'fields': [{'label': 'Name', 'value': n}, {'label': l, 'value': v}]}),
 lambda n, l, v: '{"%s":"%s"}' % (keyname(l), v),
 lambda n, l, v: 'customer:\n  name: %s\n  %s: "%s"\n' % (n, keyname(l), v),
 lambda n, l, v: '<person><name>%s</name><%s>%s</%s></person>' % (n, keyname(l), v, keyname(l)),
 lambda n, l, v: "INSERT INTO people (name, %s) VALUES ('%s', '%s');" % (keyname(l), n.replace("'", "''"), v),
 lambda n, l, v: "SELECT * FROM claims WHERE %s = '%s' LIMIT 1" % (keyname(l), v),
 lambda n, l, v: ' id | name | %s\n----+------+------\n %2d | %s | %s\n(1 row)' % (keyname(l), R.randint(1, 99), n, v),
 lambda n, l, v: '| Name | %s |\n|---|---|\n| %s | %s |' % (l, n, v),
 lambda n, l, v: '%s INFO signup user="%s" %s=%s step=3' % (ts(), n, keyname(l), v),
 lambda n, l, v: '%s [audit] lookup by %s value=%s result=1' % (ts(), l, v),
 lambda n, l, v: 'ValidationError: %s "%s" already exists (row %d)' % (l, v, R.randint(1, 999)),
 lambda n, l, v: '***************************\n  name: %s\n  %s: %s\n' % (n, keyname(l), v),
 lambda n, l, v: 'FORM 12-B\n1. Name ......... %s\n2. %s ......... %s\n3. Date ......... %s' % (n, l, v, '2026'),
 lambda n, l, v: 'NAME    %s\n%s   %s\nPAGE 1 / 2' % (n.upper(), l.upper(), v),
 lambda n, l, v: 'To: records\nSubject: %s\n\n%s\n%s: %s\n' % (l, n, l, v),
 lambda n, l, v: 'BEGIN:VCARD\nVERSION:4.0\nFN:%s\nNOTE:%s %s\nEND:VCARD' % (n, l, v),
 lambda n, l, v: 'BEGIN:VEVENT\nSUMMARY:%s\nDESCRIPTION:%s %s\nEND:VEVENT' % (n, l, v),
 lambda n, l, v: '- [ ] call %s\n- [ ] verify %s %s\n' % (n, l, v),
 lambda n, l, v: '%s: %s' % (l, v),
 lambda n, l, v: '%s %s' % (l, v),
 lambda n, l, v: '%s\n%s' % (l, v),
 lambda n, l, v: '%s = %s' % (l, v),
 lambda n, l, v: '%s (%s: %s)' % (n, l, v),
 lambda n, l, v: '<tr><th>%s</th><td>%s</td></tr>' % (l, v),
 lambda n, l, v: '<label for="a">%s</label><input id="a" value="%s">' % (l, v),
 lambda n, l, v: '* %s\n** %s :: %s' % (n, l, v),
 lambda n, l, v: 'user.%s=%s\nuser.name=%s' % (keyname(l), v, n),
 lambda n, l, v: 'const applicant = { name: "%s", %s: "%s" };' % (n, keyname(l), v),
 lambda n, l, v: 'person = Person(name="%s", %s="%s")' % (n, keyname(l), v),
 lambda n, l, v: 'expect(user.%s).toBe("%s")' % (keyname(l), v),
 lambda n, l, v: 'GET /people?%s=%s HTTP/1.1" 200 512' % (keyname(l), v.replace(' ', '%20')),
 lambda n, l, v: '%s,%s,%s\n' % (n, l, v),
 lambda n, l, v: '#1 %s\n   %s → %s\n' % (n, l, v),
 lambda n, l, v: '**%s**\n- %s: `%s`\n' % (n, l, v),
 lambda n, l, v: '+--------+\n| %s |\n| %s %s |\n+--------+' % (n, l, v),
 lambda n, l, v: J([['name', l], [n, v]]),
 lambda n, l, v: '{"op":"replace","path":"/%s","value":"%s"}' % (keyname(l), v),
 lambda n, l, v: 'HSET user:%d %s "%s"' % (R.randint(1, 999), keyname(l), v),
 lambda n, l, v: "db.users.updateOne({_id:%d},{$set:{%s:'%s'}})" % (R.randint(1, 99), keyname(l), v),
 lambda n, l, v: 'dn: cn=%s,ou=people\ndescription: %s %s\n' % (n, l, v),
 lambda n, l, v: 'kafka key=%d value={"%s":"%s"}' % (R.randint(1, 999), keyname(l), v),
 lambda n, l, v: 'PID|1||%s^^^%s||%s' % (v, l, n.replace(' ', '^')),
 lambda n, l, v: '%s;;%s=%s;;end' % (n, l, v),
 lambda n, l, v: '%s\t%s' % (l, v),
 lambda n, l, v: '>> %s?\n<< %s' % (l, v),
 lambda n, l, v: 'p.%d  %s  %s  %s' % (R.randint(1, 40), n, l, v),
 lambda n, l, v: '@@ -1 +1 @@\n-%s: \n+%s: %s' % (l, l, v),
 lambda n, l, v: '"%s" "%s" "%s"' % (n, l, v),
 lambda n, l, v: 'Badge %d\n%s\n%s %s\nVALID' % (R.randint(1, 999), n, l, v),
 lambda n, l, v: 'msg=validated field=%s input=%s ok' % (keyname(l), v),
 lambda n, l, v: '%s/%s: %s' % (n, l, v),
]
for i, f in enumerate(SH): f.__name__ = 'pii%d' % i
def sent(cc, l, v, cap=4):
    la = LANG.get(cc, 'en'); pool = [s for s in SENT[la] if USE[s] < cap]
    if not pool: pool = [s for s in SENT['en'] if USE[s] < cap]
    if not pool: return least(SH, 12)(name(cc), l, v)
    s = min(pool, key=lambda x: (USE[x], R.random())); USE[s] += 1
    return s.replace('{n}', name(cc)).replace('{l}', l).replace('{v}', v).replace('{m}', F.month_name()).replace('{i}', str(R.randint(2, 990)))
VALID = []
def one(sub, cc, labels, g, k):
    v = g(); l = labels[k % len(labels)]; VALID.append((sub, v, getattr(g, 'mod', None)))
    if k == 3: 
        from sec_rows import leaf
        return add('pii', sub, leaf(keyname(l), M(v)), False, _v=v)
    inner = sent(cc, l, M(v)) if k % 2 == 0 else least(SH, 12)(name(cc), l, M(v))
    return add('pii', sub, inner)
def build():
    for k in range(4):
        for sub, cc, labels, g in X: one(sub, cc, labels, g, k)
    for cc in IBC:
        v = ibn(cc); l = pick('IBAN', 'IBAN', 'Konto', 'bank account') if cc not in ('DE', 'FR') else pick('IBAN', 'Bankverbindung', 'compte')
        add('pii', 'iban_' + cc.lower(), sent(cc, l, M(v)) if R.random() < .5 else least(SH, 12)(name(cc), l, M(v)))
    for cc in PHC:
        l = R.choice(PHL.get(cc, 'phone;mobile').split(';'))
        add('pii', 'phone_' + cc.lower(), sent(cc, l, M(phone(cc))) if R.random() < .5 else least(SH, 12)(name(cc), l, M(phone(cc))))
        if cc in 'US GB DE FR ES IT NL PL JP IN BR AU TR RU CN KR SE'.split():
            add('pii', 'phone_nat_' + cc.lower(), sent(cc, l, M(phone(cc, False))) if R.random() < .6 else least(SH, 12)(name(cc), l, M(phone(cc, False))))
    # records with several fields of one person
    byname = {x[0]: x for x in X}
    REC = [('DE', 'Name', ['de_steuer_id', 'de_kvnr', 'de_rvnr'], 'Geburtsdatum', 'Telefon', 'IBAN'), ('FR', 'Nom', ['fr_nir', 'fr_nif'], 'Date de naissance', 'Téléphone', 'IBAN'), ('ES', 'Nombre', ['es_dni', 'es_nie'], 'Fecha de nacimiento', 'Teléfono', 'IBAN'), ('IT', 'Nome', ['it_codice_fiscale'], 'Data di nascita', 'Cellulare', 'IBAN'), ('PL', 'Imię i nazwisko', ['pl_pesel'], 'Data urodzenia', 'Telefon', 'IBAN'), ('SE', 'Namn', ['se_personnummer'], 'Födelsedatum', 'Mobil', 'IBAN'),
           ('NL', 'Naam', ['nl_bsn'], 'Geboortedatum', 'Telefoon', 'IBAN'), ('PT', 'Nome', ['pt_nif', 'pt_cc'], 'Data de nascimento', 'Telemóvel', 'IBAN'), ('TR', 'Ad Soyad', ['tr_tckn'], 'Doğum tarihi', 'Cep', 'IBAN'), ('CZ', 'Jméno', ['cz_rc'], 'Datum narození', 'Mobil', 'IBAN'), ('BR', 'Nome', ['br_cpf'], 'Data de nascimento', 'Celular', None), ('MX', 'Nombre', ['mx_curp', 'mx_rfc', 'mx_clabe'], 'Fecha de nacimiento', 'Celular', None), ('CN', '姓名', ['cn_resident_id'], '出生日期', '手机号', None), ('JP', '氏名', ['jp_my_number'], '生年月日', '電話番号', None), ('KR', '이름', ['kr_rrn'], '생년월일', '전화번호', None), ('RU', 'ФИО', ['ru_snils', 'ru_inn'], 'Дата рождения', 'Телефон', None), ('GB', 'Full name', ['uk_nino', 'uk_nhs'], 'Date of birth', 'Mobile', 'IBAN'), ('US', 'Full name', ['us_ssn', 'us_driver_license'], 'DOB', 'Phone', None), ('IN', 'Name', ['in_aadhaar', 'in_pan'], 'Date of birth', 'Mobile', None), ('AU', 'Name', ['au_tfn', 'au_medicare'], 'Date of birth', 'Mobile', None), ('IL', 'שם', ['il_id'], 'תאריך לידה', 'טלפון', 'IBAN'), ('FI', 'Nimi', ['fi_hetu'], 'Syntymäaika', 'Puhelin', 'IBAN')]
    for k in range(44):
        cc, nm, ids, dob, ph, ib = REC[k % len(REC)]
        fl = [(nm, name(cc))]
        for i in ids: fl.append((R.choice(byname[i][2]), M(byname[i][3]())))
        fl.append((dob, M(d().strftime('%Y-%m-%d')))); fl.append((ph, M(phone(cc)))); fl.append(('E-Mail' if cc == 'DE' else 'email', M(email())))
        if ib: fl.append((ib, M(ibn(cc))))
        rest = fl[1:]; R.shuffle(rest); fl = fl[:1] + rest
        st = k % 7
        inner = [lambda: '\n'.join('%s: %s' % x for x in fl), lambda: J({keyname(a): b for a, b in fl}, indent=pick(None, 2)), lambda: ';'.join(a for a, _ in fl) + '\n' + ';'.join(b for _, b in fl), lambda: '\n'.join('| %s | %s |' % x for x in fl), lambda: '<dl>' + ''.join('<dt>%s</dt><dd>%s</dd>' % x for x in fl) + '</dl>', lambda: '\n'.join('%s ........ %s' % x for x in fl), lambda: '\n'.join('%d) %s   %s' % (n + 1, a, b) for n, (a, b) in enumerate(fl))][st]()
        add('pii', 'record_' + cc.lower(), inner)
    # several people in one message
    for _ in range(14):
        rows = [(F.name(), M(email()), M(phone('US'))) for _ in range(3)]
        sp_ = pick(',', ' | ', ';', '\t'); add('pii', 'mixed_table', sp_.join(R.choice([('name', 'email', 'phone'), ('Full name', 'E-mail', 'Mobile'), ('contact', 'mail', 'tel')])) + '\n' + '\n'.join(sp_.join(r) for r in rows))
    for _ in range(22):
        k = R.choice([x for x in X if x[1] == '*' and x[0] in ('credit_card', 'email', 'ipv4', 'date_of_birth')])
        add('pii', k[0], sent('US', pick(*k[2][:2]), M(k[3]())))
