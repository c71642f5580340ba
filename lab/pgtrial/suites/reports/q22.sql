-- In which nations are buyers who have money and never bought anything?
select code, count(*) as buyers, sum(balance) as balances
from (
    select substring(b.phone from 2 for 2) as code, b.balance
    from buyers b
    where substring(b.phone from 2 for 2) in ('31', '36', '38', '44', '47', '50', '53')
      and b.balance > (
          select avg(balance)
          from buyers
          where balance > 0
            and substring(phone from 2 for 2) in ('31', '36', '38', '44', '47', '50', '53')
      )
      and not exists (select 1 from purchases p where p.buyer_id = b.buyer_id)
) as idle
group by code
order by code;
