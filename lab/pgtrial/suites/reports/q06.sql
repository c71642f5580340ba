-- What would a year have brought without the small discounts on small quantities?
select sum(price * discount) as given_away, count(*) as lines
from lines
where shipped_on >= date '2021-01-01'
  and shipped_on < date '2022-01-01'
  and discount between 0.03 and 0.05
  and quantity < 20;
