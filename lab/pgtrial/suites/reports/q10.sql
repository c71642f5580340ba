-- The twenty buyers of a quarter's purchases who returned goods of the highest value.
select b.buyer_id,
       b.buyer,
       sum(l.price * (1 - l.discount)) as returned,
       b.balance,
       n.nation,
       b.address,
       b.phone,
       b.remark
from purchases p
join lines l on l.purchase_id = p.purchase_id
join buyers b on b.buyer_id = p.buyer_id
join nations n on n.nation_id = b.nation_id
where p.purchased_on >= date '2019-10-01'
  and p.purchased_on < date '2020-01-01'
  and l.outcome = 'returned'
group by b.buyer_id, b.buyer, b.balance, n.nation, b.address, b.phone, b.remark
order by returned desc, b.buyer_id
limit 20;
